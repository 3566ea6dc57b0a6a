#include "engine/gguf_facts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <limits>

#include <fmt/format.h>

#include "engine/checksum.h"
#include "engine/llama_handles.h"
#include "engine/llama_log.h"

namespace flotilla::engine {
namespace {

std::unexpected<Error> broken(const std::filesystem::path& file, std::string_view what) {
  return fail(Code::InvalidArgument, fmt::format("{} {}", file.string(), what));
}

// Values of keys; a key that is missing or of another type counts as absent.
std::string text_value(const gguf_context* gguf, const std::string& key) {
  const std::int64_t id = gguf_find_key(gguf, key.c_str());
  if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_STRING) return {};
  return gguf_get_val_str(gguf, id);
}
std::uint32_t number_value(const gguf_context* gguf, const std::string& key) {
  const std::int64_t id = gguf_find_key(gguf, key.c_str());
  if (id < 0) return 0;
  if (gguf_get_kv_type(gguf, id) == GGUF_TYPE_UINT16) return gguf_get_val_u16(gguf, id);
  return gguf_get_kv_type(gguf, id) == GGUF_TYPE_UINT32 ? gguf_get_val_u32(gguf, id) : 0;
}
bool flag_value(const gguf_context* gguf, const std::string& key, bool otherwise) {
  const std::int64_t id = gguf_find_key(gguf, key.c_str());
  if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_BOOL) return otherwise;
  return gguf_get_val_bool(gguf, id);
}

Result<GgufHandle> open_gguf(const std::filesystem::path& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) {
    return fail(Code::NotFound, fmt::format("there is no model file {}", file.string()));
  }
  if (!std::filesystem::is_regular_file(status)) return broken(file, "is not a file");
  std::ifstream in(file, std::ios::binary);
  if (!in) return broken(file, "cannot be opened: check its permissions");
  std::array<char, 4> magic{};
  if (!in.read(magic.data(), magic.size()) || std::string_view(magic.data(), 4) != GGUF_MAGIC) {
    return broken(file, "is not a GGUF file: it does not begin with \"GGUF\"");
  }
  const LlamaErrors errors;
  GgufHandle gguf(gguf_init_from_file(file.c_str(), {.no_alloc = true, .ctx = nullptr}));
  if (!gguf) {
    return broken(
        file, fmt::format("is broken or truncated: its header cannot be read ({})", errors.text()));
  }
  return gguf;
}

// Adds one file's tensors to the facts.
Result<void> add_file(const std::filesystem::path& file, const gguf_context* gguf,
                      GgufFacts& facts) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  if (error) return broken(file, "cannot be read: " + error.message());
  const std::uint64_t data_offset = gguf_get_data_offset(gguf);
  std::uint64_t end = data_offset;
  for (std::int64_t id = 0; id < gguf_get_n_tensors(gguf); ++id) {
    const std::uint64_t tensor = gguf_get_tensor_size(gguf, id);
    end = std::max<std::uint64_t>(end, data_offset + gguf_get_tensor_offset(gguf, id) + tensor);
    facts.tensor_bytes += static_cast<std::int64_t>(tensor);
  }
  if (end > size) {
    return broken(file, fmt::format("is truncated: its header announces {} bytes, it has {}; "
                                    "fetch it again",
                                    end, size));
  }
  facts.file_bytes += static_cast<std::int64_t>(size);

  // The header names everything but the weights; blocks spread over them tell fine-tunes apart.
  std::ifstream in(file, std::ios::binary);
  std::vector<char> block(static_cast<std::size_t>(data_offset));
  const auto mix_in = [&](std::uint64_t offset) {
    in.clear();
    in.seekg(static_cast<std::streamoff>(offset));
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    const auto bytes = std::as_bytes(std::span(block)).first(static_cast<std::size_t>(in.gcount()));
    facts.fingerprint = checksum(bytes, facts.fingerprint);
  };
  mix_in(0);
  constexpr int kSamples = 64;
  block.resize(4096);
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    mix_in(data_offset + (end - data_offset) / kSamples * i);
  }
  return {};
}

// The files of a split model, from the first one's name and count.
Result<std::vector<std::filesystem::path>> split_files(const std::filesystem::path& first,
                                                       int count, int index) {
  if (index != 0) {
    return broken(first,
                  "is not the first file of its split model: name the one that ends with "
                  "-00001-of-…");
  }
  std::array<char, 4096> text{};
  if (llama_split_prefix(text.data(), text.size(), first.c_str(), 0, count) <= 0) {
    return broken(first, fmt::format("is the first of {} files, but its name does not end with "
                                     "-00001-of-{:05}.gguf",
                                     count, count));
  }
  const std::string prefix(text.data());
  std::vector<std::filesystem::path> files;
  for (int i = 0; i < count; ++i) {
    llama_split_path(text.data(), text.size(), prefix.c_str(), i, count);
    files.emplace_back(text.data());
  }
  return files;
}

GgufFacts::Use use_of(bool causal, std::uint32_t pooling) {
  using Use = GgufFacts::Use;
  switch (pooling) {
    case LLAMA_POOLING_TYPE_NONE: return causal ? Use::Text : Use::Other;
    case LLAMA_POOLING_TYPE_LAST: return causal ? Use::LastVectors : Use::WholeVectors;
    case LLAMA_POOLING_TYPE_MEAN:
    case LLAMA_POOLING_TYPE_CLS: return Use::WholeVectors;
    default: return Use::Other;
  }
}

}  // namespace

Result<GgufFacts> read_gguf_facts(const std::filesystem::path& model) {
  GgufFacts facts;
  auto first = open_gguf(model);
  if (!first) return fail(first.error());
  const gguf_context* gguf = first->get();
  facts.architecture = text_value(gguf, "general.architecture");
  if (facts.architecture.empty()) {
    return broken(model, "names no general.architecture: it is not a language model");
  }
  const std::string& arch = facts.architecture;
  facts.use = use_of(flag_value(gguf, arch + ".attention.causal", true),
                     number_value(gguf, arch + ".pooling_type"));

  facts.context_trained = static_cast<int>(
      std::min<std::uint32_t>(number_value(gguf, arch + ".context_length"), 1U << 30));

  const auto count = static_cast<int>(number_value(gguf, "split.count"));
  if (count <= 1) {
    facts.files = {model};
    if (const auto added = add_file(model, gguf, facts); !added) return fail(added.error());
    return facts;
  }
  auto files = split_files(model, count, static_cast<int>(number_value(gguf, "split.no")));
  if (!files) return fail(files.error());
  facts.files = std::move(*files);
  for (const auto& file : facts.files) {
    const auto opened = open_gguf(file);
    if (!opened) return fail(opened.error());
    if (const auto added = add_file(file, opened->get(), facts); !added) return fail(added.error());
  }
  return facts;
}

}  // namespace flotilla::engine
