#include "model/gguf_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "model/byte_source.h"
#include "model/gguf_types.h"

namespace flotilla::model {
namespace {

static_assert(std::endian::native == std::endian::little,
              "values are read as they lie in the file");

// Fewer rows than this are not worth their quantisation: little is saved and much is lost.
constexpr std::uint64_t kSmallRows = 64;

// Far above any real model (the largest have ~70 metadata entries, ~2,000 tensors, 0.3 M tokens).
constexpr std::int64_t kStatePartMax = 1 << 20;  // a larger part of a recurrent state is a lie
constexpr std::uint64_t kEntriesMax = 1 << 16;
constexpr std::uint64_t kTensorsMax = 1 << 18;
constexpr std::uint64_t kNameMax = 1 << 10;
constexpr std::uint64_t kTextKept = 1 << 12;  // longer texts (templates) are skipped
constexpr std::uint64_t kArrayMax = 1 << 26;
constexpr std::size_t kArrayKept = 1 << 12;                 // numbers of an array; layers are fewer
constexpr std::int64_t kNumberMax = std::int64_t{1} << 40;  // of a dimension that we compute with
constexpr std::int64_t kLayersMax = 1 << 14;

enum ValueType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
  kTypes
};
constexpr std::array<std::uint64_t, kTypes> kValueBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

struct List {
  std::uint64_t count = 0;
  std::vector<std::int64_t> numbers;  // the first kArrayKept, of integers only
};
using Value = std::variant<std::monostate, std::int64_t, std::string, List>;

class Parser {
 public:
  Parser(ByteSource source, std::string name)
      : source_(std::move(source)), name_(std::move(name)) {}
  Result<GgufHeader> parse();

 private:
  std::unexpected<Error> refuse(const std::string& what) const {
    return fail(Code::Unprocessable, fmt::format("{}: {}", name_, what));
  }
  std::unexpected<Error> cut(std::string_view where) const {
    return refuse(fmt::format("is truncated: the file ends in {} at byte {}; fetch it again", where,
                              source_.size()));
  }
  template <class T>
  bool read(T& value) {
    return source_.read(&value, sizeof value);
  }

  Result<std::string> read_name(std::string_view what);
  Result<Value> read_value(std::uint32_t type, const std::string& key);
  Result<Value> read_string(const std::string& key);
  Result<Value> read_array(const std::string& key);
  std::optional<std::int64_t> read_integer(std::uint32_t type);
  Result<void> read_preamble();
  Result<void> read_metadata();
  Result<void> read_tensors();
  Result<std::uint64_t> read_tensor(const std::string& tensor, std::uint64_t& offset);
  std::int64_t state_bytes() const;
  Result<void> describe();

  std::optional<std::int64_t> number(const std::string& key) const;
  std::string text(const std::string& key) const;
  const List* list(const std::string& key) const;

  ByteSource source_;
  std::string name_;
  GgufHeader header_;
  std::uint64_t entries_ = 0;
  std::uint64_t tensors_ = 0;
  std::uint64_t data_end_ = 0;  // from the start of the data
  std::map<std::string, Value> values_;
  std::map<std::string_view, std::uint64_t> bytes_by_type_;
};

Result<std::string> Parser::read_name(std::string_view what) {
  std::uint64_t length = 0;
  if (!read(length)) return cut(what);
  if (length > kNameMax) return refuse(fmt::format("{} is {} bytes long", what, length));
  std::string out(static_cast<std::size_t>(length), '\0');
  if (!source_.read(out.data(), length)) return cut(what);
  return out;
}

Result<void> Parser::read_preamble() {
  std::array<char, 4> magic{};
  if (!read(magic) || std::memcmp(magic.data(), "GGUF", 4) != 0)
    return refuse(fmt::format("is not a GGUF file ({} bytes); give a model in that format, whole",
                              source_.size()));
  if (!read(header_.version)) return cut("the version");
  if (header_.version != 2 && header_.version != 3) {
    const bool big = header_.version == 0x02000000 || header_.version == 0x03000000;
    return refuse(big ? "is a big-endian GGUF file"
                      : fmt::format("has GGUF version {}; 2 and 3 are known", header_.version));
  }
  if (!read(tensors_) || !read(entries_)) return cut("the counts");
  if (tensors_ > kTensorsMax) return refuse(fmt::format("claims {} tensors", tensors_));
  if (entries_ > kEntriesMax) return refuse(fmt::format("claims {} metadata entries", entries_));
  return {};
}

std::optional<std::int64_t> Parser::read_integer(std::uint32_t type) {
  const auto get = [this]<class T>(T value) -> std::optional<std::int64_t> {
    if (!read(value)) return std::nullopt;
    if constexpr (std::is_same_v<T, std::uint64_t>)
      return static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX));
    else
      return static_cast<std::int64_t>(value);
  };
  switch (type) {
    case kBool:
    case kU8: return get(std::uint8_t{});
    case kI8: return get(std::int8_t{});
    case kU16: return get(std::uint16_t{});
    case kI16: return get(std::int16_t{});
    case kU32: return get(std::uint32_t{});
    case kI32: return get(std::int32_t{});
    case kU64: return get(std::uint64_t{});
    case kI64: return get(std::int64_t{});
    default: return std::nullopt;
  }
}

Result<Value> Parser::read_string(const std::string& key) {
  std::uint64_t length = 0;
  if (!read(length)) return cut(key);
  if (length > kTextKept) {
    if (!source_.skip(length)) return cut(key);
    return Value{std::string("…")};
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  if (!source_.read(text.data(), length)) return cut(key);
  return Value{std::move(text)};
}

Result<Value> Parser::read_array(const std::string& key) {
  std::uint32_t type = 0;
  List list;
  if (!read(type) || !read(list.count)) return cut(key);
  if (type >= kTypes || type == kArray)
    return refuse(fmt::format("{} is an array of unknown type {}", key, type));
  if (list.count > kArrayMax) return refuse(fmt::format("{} claims {} elements", key, list.count));
  if (type == kString) {
    // Each takes 8 bytes at least, so a false count ends at the end of the file.
    for (std::uint64_t i = 0; i < list.count; ++i) {
      std::uint64_t length = 0;
      if (!read(length) || !source_.skip(length)) return cut(key);
    }
    return Value{std::move(list)};
  }
  const bool integers = type != kF32 && type != kF64;
  const std::uint64_t kept = integers ? std::min<std::uint64_t>(list.count, kArrayKept) : 0;
  for (std::uint64_t i = 0; i < kept; ++i) {
    const auto element = read_integer(type);
    if (!element) return cut(key);
    list.numbers.push_back(*element);
  }
  if (!source_.skip((list.count - kept) * kValueBytes[type])) return cut(key);
  return Value{std::move(list)};
}

Result<Value> Parser::read_value(std::uint32_t type, const std::string& key) {
  switch (type) {
    case kString: return read_string(key);
    case kArray: return read_array(key);
    case kF32:
    case kF64:
      if (!source_.skip(kValueBytes[type])) return cut(key);
      return Value{};
    default: break;
  }
  if (type >= kTypes) return refuse(fmt::format("{} has unknown type {}", key, type));
  const auto integer = read_integer(type);
  if (!integer) return cut(key);
  return Value{*integer};
}

Result<void> Parser::read_metadata() {
  for (std::uint64_t i = 0; i < entries_; ++i) {
    auto key = read_name("a metadata key");
    if (!key) return fail(key.error());
    std::uint32_t type = 0;
    if (!read(type)) return cut(*key);
    auto value = read_value(type, *key);
    if (!value) return fail(value.error());
    if (!values_.emplace(*key, std::move(*value)).second)
      return refuse(fmt::format("has {} twice", *key));
  }
  return {};
}

// Bytes of its data.
Result<std::uint64_t> Parser::read_tensor(const std::string& tensor, std::uint64_t& offset) {
  std::uint32_t dimensions = 0;
  if (!read(dimensions)) return cut(tensor);
  if (dimensions > 4) return refuse(fmt::format("{} has {} dimensions", tensor, dimensions));
  std::uint64_t elements = 1;
  std::uint64_t row = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    std::uint64_t size = 0;
    if (!read(size)) return cut(tensor);
    if (size > static_cast<std::uint64_t>(kNumberMax) ||
        (size != 0 && elements > static_cast<std::uint64_t>(kNumberMax) / size))
      return refuse(fmt::format("{} has a dimension of {}", tensor, size));
    elements *= size;
    if (i == 0) row = size;
  }
  std::uint32_t id = 0;
  if (!read(id) || !read(offset)) return cut(tensor);
  const TensorType type = tensor_type(id);
  if (type.name.empty()) return refuse(fmt::format("{} has unknown type {}", tensor, id));
  if (row % type.block != 0)
    return refuse(fmt::format("{} has rows of {}, no multiple of {}'s {}", tensor, row, type.name,
                              type.block));
  const std::uint64_t bytes = elements / type.block * type.bytes;
  bytes_by_type_[type.name] += bytes;
  if (tensor == "token_embd.weight" && dimensions == 2) {
    header_.vocabulary = static_cast<std::int64_t>(elements / std::max<std::uint64_t>(row, 1));
    header_.embedding_bytes = static_cast<std::int64_t>(bytes);
  }
  if (dimensions == 2 && type.block > 1 && row > 0 && elements / row < kSmallRows) {
    ++header_.small_quantized;
    header_.small_quantized_name = tensor;
  }
  header_.has_output = header_.has_output || tensor == "output.weight";
  return bytes;
}

Result<void> Parser::read_tensors() {
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < tensors_; ++i) {
    auto tensor = read_name("a tensor's name");
    if (!tensor) return fail(tensor.error());
    std::uint64_t offset = 0;
    const auto bytes = read_tensor(*tensor, offset);
    if (!bytes) return fail(bytes.error());
    // Both are below 2^46, so the sums of 2^18 tensors stay below 2^64.
    if (offset > static_cast<std::uint64_t>(kNumberMax) * 64)
      return refuse(fmt::format("{} begins at byte {}", *tensor, offset));
    total += *bytes;
    data_end_ = std::max(data_end_, offset + *bytes);
  }
  header_.tensor_count = static_cast<std::int64_t>(tensors_);
  header_.tensor_bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(total, INT64_MAX));
  return {};
}

std::optional<std::int64_t> Parser::number(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  const auto* value = std::get_if<std::int64_t>(&found->second);
  if (value == nullptr || *value < 0 || *value > kNumberMax) return std::nullopt;
  return *value;
}

std::string Parser::text(const std::string& key) const {
  const auto found = values_.find(key);
  const auto* value = found == values_.end() ? nullptr : std::get_if<std::string>(&found->second);
  return value == nullptr ? std::string() : *value;
}

const List* Parser::list(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : std::get_if<List>(&found->second);
}

// Recurrent layers are those without attention; where all have it, as in Falcon-H1, all have both.
// Each keeps the last inputs of its convolution and a state, as F32.
std::int64_t Parser::state_bytes() const {
  const auto of = [this](const char* name) {
    return std::min(kStatePartMax, number(header_.architecture + ".ssm." + name).value_or(0));
  };
  const std::int64_t inner = of("inner_size");
  if (inner == 0) return 0;
  const std::int64_t state = of("state_size");
  const std::int64_t inputs = std::max<std::int64_t>(of("conv_kernel"), 1) - 1;
  const std::int64_t width = inner + 2 * std::min<std::int64_t>(of("group_count"), 1024) * state;
  auto layers = std::ranges::count(header_.kv_heads, 0);
  if (layers == 0) layers = static_cast<std::ptrdiff_t>(header_.kv_heads.size());
  return static_cast<std::int64_t>(
      std::min(9e18, 4.0 * static_cast<double>(layers) *
                         (static_cast<double>(inputs) * static_cast<double>(width) +
                          static_cast<double>(inner) * static_cast<double>(state))));
}

Result<void> Parser::describe() {
  const auto alignment = static_cast<std::uint64_t>(number("general.alignment").value_or(32));
  if (alignment == 0 || alignment > (1 << 20))
    return refuse(fmt::format("general.alignment is {}", alignment));
  const std::uint64_t data = (source_.position() + alignment - 1) / alignment * alignment;
  header_.data_offset = static_cast<std::int64_t>(data);
  header_.file_bytes = static_cast<std::int64_t>(source_.size());
  if (tensors_ > 0 && data + data_end_ > source_.size())
    return refuse(
        fmt::format("is truncated: it has {} bytes and its tensors need {}; fetch it again",
                    source_.size(), data + data_end_));

  header_.architecture = text("general.architecture");
  header_.name = text("general.name");
  header_.has_chat_template = values_.contains("tokenizer.chat_template");
  header_.split_index =
      static_cast<int>(std::min<std::int64_t>(number("split.no").value_or(0), 99999));
  header_.split_count =
      static_cast<int>(std::clamp<std::int64_t>(number("split.count").value_or(1), 1, 99999));
  if (header_.architecture.empty() && header_.split_index == 0)
    return refuse("has no general.architecture; it is not a model");

  const auto of = [this](const char* key) { return header_.architecture + "." + key; };
  header_.context_trained = number(of("context_length")).value_or(0);
  header_.embedding = number(of("embedding_length")).value_or(0);
  header_.layers = number(of("block_count")).value_or(0);
  if (header_.layers > kLayersMax) return refuse(fmt::format("claims {} layers", header_.layers));
  const List* heads = list(of("attention.head_count"));
  header_.heads = number(of("attention.head_count")).value_or(0);
  if (heads != nullptr && !heads->numbers.empty())
    header_.heads = std::clamp<std::int64_t>(
        *std::max_element(heads->numbers.begin(), heads->numbers.end()), 0, kNumberMax);
  header_.kv_heads.assign(static_cast<std::size_t>(header_.layers),
                          number(of("attention.head_count_kv")).value_or(header_.heads));
  if (const List* each = list(of("attention.head_count_kv")))
    for (std::size_t i = 0; i < std::min(header_.kv_heads.size(), each->numbers.size()); ++i)
      header_.kv_heads[i] = std::clamp<std::int64_t>(each->numbers[i], 0, kNumberMax);
  const std::int64_t dim = header_.heads > 0 ? header_.embedding / header_.heads : 0;
  header_.key_dim = number(of("attention.key_length")).value_or(dim);
  header_.value_dim = number(of("attention.value_length")).value_or(dim);
  header_.state_bytes = state_bytes();
  if (const auto size = number(of("vocab_size"))) header_.vocabulary = *size;
  if (const List* tokens = list("tokenizer.ggml.tokens"))
    header_.vocabulary = static_cast<std::int64_t>(tokens->count);

  if (const auto type = number("general.file_type"))
    header_.quantization = file_type_name(static_cast<std::uint64_t>(*type));
  if (header_.quantization.empty() && !bytes_by_type_.empty())
    header_.quantization =
        std::max_element(bytes_by_type_.begin(), bytes_by_type_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; })
            ->first;
  return {};
}

Result<GgufHeader> Parser::parse() {
  if (auto done = read_preamble(); !done) return fail(done.error());
  if (auto done = read_metadata(); !done) return fail(done.error());
  if (auto done = read_tensors(); !done) return fail(done.error());
  if (auto done = describe(); !done) return fail(done.error());
  return std::move(header_);
}

}  // namespace

Result<GgufHeader> read_gguf_header(const std::filesystem::path& file) {
  auto source = ByteSource::open(file);
  if (!source) return fail(source.error());
  return Parser(std::move(*source), file.string()).parse();
}

Result<GgufHeader> parse_gguf_header(std::span<const std::uint8_t> file) {
  return Parser(ByteSource::from_memory(file), "GGUF").parse();
}

}  // namespace flotilla::model
