#include "api/agent_frames.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "api/agent_fields.h"
#include "api/json.h"
#include "api/json_text.h"
#include "base/check.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kHeaderBytes = 4;
constexpr std::size_t kTextMax = std::size_t{8}
                                 << 10;  // of an event; repaired text grows at most 6 times
constexpr std::size_t kListMax = 4096;
constexpr std::size_t kListBytesMax = kAgentFrameMax / 2;

// --- names on the wire ---

template <class T>
constexpr std::string_view kType = "";
template <>
constexpr std::string_view kType<Heartbeat> = "heartbeat";
template <>
constexpr std::string_view kType<StartReplica> = "start";
template <>
constexpr std::string_view kType<StopReplica> = "stop";
template <>
constexpr std::string_view kType<ListModels> = "list_models";
template <>
constexpr std::string_view kType<Preflight> = "preflight";
template <>
constexpr std::string_view kType<EndAgent> = "end";
template <>
constexpr std::string_view kType<AttachAgent> = "attach";
template <>
constexpr std::string_view kType<AgentHello> = "hello";
template <>
constexpr std::string_view kType<AgentRefused> = "refused";
template <>
constexpr std::string_view kType<ReplicaSpawned> = "spawned";
template <>
constexpr std::string_view kType<ReplicaLoading> = "loading";
template <>
constexpr std::string_view kType<ReplicaReady> = "ready";
template <>
constexpr std::string_view kType<ReplicaExited> = "exited";
template <>
constexpr std::string_view kType<AgentTelemetry> = "telemetry";
template <>
constexpr std::string_view kType<ModelList> = "model_list";
template <>
constexpr std::string_view kType<ReadLog> = "read_log";
template <>
constexpr std::string_view kType<LogText> = "log_text";
template <>
constexpr std::string_view kType<PreflightAnswer> = "preflight_answer";

// --- writing ---

class Writer {
 public:
  Writer(std::string& out, std::size_t text_max) : out_(out), text_max_(text_max) {}

  void operator()(std::string_view name, const auto& value) {
    begin(name);
    write(value);
  }
  template <class T>
  void operator()(std::string_view name, const std::optional<T>& value) {
    if (value) (*this)(name, *value);
  }

  template <class T>
  void object(const T& members, std::string_view type = {}) {
    const bool outer = std::exchange(first_, true);
    out_ += '{';
    if (!type.empty()) (*this)("type", type);
    fields(*this, members);
    out_ += '}';
    first_ = outer;
  }

 private:
  void begin(std::string_view name) {
    if (!std::exchange(first_, false)) out_ += ',';
    append_quoted(out_, name);
    out_ += ':';
  }
  // Our parser refuses U+0000, which a log may hold.
  void write(std::string_view text) {
    std::string clean(text.substr(0, text_max_));
    std::replace(clean.begin(), clean.end(), '\0', ' ');
    append_quoted(out_, clean);
  }
  void write(const std::string& text) { write(std::string_view(text)); }
  void write(bool value) { out_ += value ? "true" : "false"; }
  void write(std::integral auto value) { out_ += fmt::format("{}", value); }
  void write(double value) { append_number(out_, value); }
  void write(const std::map<std::string, std::string>& texts) {
    const bool outer = std::exchange(first_, true);
    out_ += '{';
    for (const auto& [name, value] : texts) (*this)(name, value);
    out_ += '}';
    first_ = outer;
  }
  void write(const std::vector<std::string>& texts) {
    out_ += '[';
    for (std::size_t i = 0; i < std::min(texts.size(), kListMax); ++i) {
      if (i > 0) out_ += ',';
      write(texts[i]);
    }
    out_ += ']';
  }
  template <class T>
  void write(const std::vector<T>& items) {
    out_ += '[';
    for (std::size_t i = 0; i < std::min(items.size(), kListMax); ++i) {
      if (out_.size() > kListBytesMax) break;
      if (i > 0) out_ += ',';
      object(items[i]);
    }
    out_ += ']';
  }
  template <class T>
    requires std::is_class_v<T>
  void write(const T& members) {
    object(members);
  }

  std::string& out_;
  const std::size_t text_max_;
  bool first_ = true;
};

template <class T>
std::string frame_of(const T& message, std::size_t text_max) {
  std::string frame(kHeaderBytes, '\0');
  Writer(frame, text_max).object(message, kType<T>);
  const std::size_t length = frame.size() - kHeaderBytes;
  for (std::size_t i = 0; i < kHeaderBytes; ++i)
    frame[i] = static_cast<char>((length >> (8 * (kHeaderBytes - 1 - i))) & 0xFF);
  return frame;
}

// What one frame cannot hold is left out, and said.
ModelList cut_to_frame(const ModelList& list) {
  ModelList out = list;
  std::size_t bytes = 0;
  std::size_t kept = 0;
  for (; kept < std::min(out.models.size(), kListMax); ++kept) {
    ModelFile& model = out.models[kept];
    bytes += 256 + 6 * (model.path.size() + model.architecture.size() + model.quantization.size() +
                        model.error.size());
    if (bytes > kListBytesMax) break;
  }
  out.truncated = out.truncated || kept < out.models.size();
  out.models.resize(kept);
  return out;
}

// --- reading ---

class Members {
 public:
  explicit Members(json::Reader& in) : in_(in) {}

  void operator()(std::string_view name, std::string& value) {
    if (auto got = in_.string(name)) value = std::move(*got);
  }
  void operator()(std::string_view name, bool& value) {
    if (auto got = in_.boolean(name)) value = *got;
  }
  void operator()(std::string_view name, double& value) {
    if (auto got = in_.number(name, -1e18, 1e18)) value = *got;
  }
  template <std::signed_integral T>
  void operator()(std::string_view name, T& value) {
    const auto got =
        in_.integer(name, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    if (got) value = static_cast<T>(*got);
  }
  template <class T>
  void operator()(std::string_view name, std::optional<T>& value) {
    if (in_.find(name) == nullptr) return;
    (*this)(name, value.emplace());
  }
  void operator()(std::string_view name, std::map<std::string, std::string>& value) {
    const json::Object* object = in_.object(name);
    if (object == nullptr) return;
    json::Reader reader(*object, in_.fault(), in_.path_of(name));
    for (const auto& member : *object)
      if (auto text = reader.string(member.key())) value.emplace(member.key(), std::move(*text));
  }
  void operator()(std::string_view name, std::vector<std::string>& value) {
    const json::Array* array = in_.array(name, kListMax);
    for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
      const auto* text = (*array)[i].if_string();
      if (text == nullptr) {
        in_.fault().set(json::item_path(in_.path_of(name), i), "must be a text");
        return;
      }
      value.emplace_back(*text);
    }
  }
  template <class T>
  void operator()(std::string_view name, std::vector<T>& value) {
    const json::Array* array = in_.array(name, kListMax);
    for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
      const json::Object* object = (*array)[i].if_object();
      if (object == nullptr) {
        in_.fault().set(json::item_path(in_.path_of(name), i), "must be an object");
        return;
      }
      json::Reader reader(*object, in_.fault(), json::item_path(in_.path_of(name), i));
      Members members(reader);
      fields(members, value.emplace_back());
    }
  }
  template <class T>
    requires std::is_class_v<T>
  void operator()(std::string_view name, T& value) {
    const json::Object* object = in_.object(name);
    if (object == nullptr) return;
    json::Reader reader(*object, in_.fault(), in_.path_of(name));
    Members members(reader);
    fields(members, value);
  }

 private:
  json::Reader& in_;
};

// As variant `V`; T is the type to read.
template <class V, class T>
Result<V> read_members(const json::Object& object) {
  json::Fault fault;
  json::Reader reader(object, fault);
  T message;
  Members members(reader);
  fields(members, message);
  if (fault) return fault.unexpected();
  return V{std::move(message)};
}

template <class V, std::size_t I = 0>
Result<V> read_type(const json::Object& object, std::string_view type) {
  if constexpr (I == std::variant_size_v<V>) {
    return fail(Code::NotFound, fmt::format("unknown frame type \"{}\"", type.substr(0, 40)));
  } else {
    using T = std::variant_alternative_t<I, V>;
    return type == kType<T> ? read_members<V, T>(object) : read_type<V, I + 1>(object, type);
  }
}

Result<json::Object> parse_text(std::string_view text) {
  return json::parse_object(text, {.bytes_max = kAgentFrameMax, .depth_max = 16});
}

template <class V>
Result<V> parse_frame(std::string_view text) {
  const auto object = parse_text(text);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader reader(*object, fault);
  const auto type = reader.string("type");
  if (!type) return fail(Code::InvalidArgument, "a frame without type");
  return read_type<V>(*object, *type);
}

}  // namespace

Result<std::string> encode_frame(const AgentCommand& command) {
  std::string frame = std::visit(
      [](const auto& message) { return frame_of(message, std::string_view::npos); }, command);
  if (frame.size() - kHeaderBytes > kAgentFrameMax)
    return fail(Code::TooLarge, fmt::format("a command of {} bytes to an agent; {} are allowed",
                                            frame.size(), kAgentFrameMax));
  return frame;
}

std::string encode_frame(const AgentEvent& event) {
  std::string frame = std::visit(
      []<class T>(const T& message) {
        if constexpr (std::same_as<T, ModelList>)
          return frame_of(cut_to_frame(message), kTextMax);
        else
          return frame_of(message, kTextMax);
      },
      event);
  CHECK(frame.size() - kHeaderBytes <= kAgentFrameMax);
  return frame;
}

Result<AgentCommand> parse_command(std::string_view json) {
  return parse_frame<AgentCommand>(json);
}
Result<AgentEvent> parse_event(std::string_view json) { return parse_frame<AgentEvent>(json); }

Result<RunnerLine> parse_runner_line(std::string_view line) {
  const auto object = parse_text(line);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader reader(*object, fault);
  const std::string phase = reader.string("phase").value_or("");
  if (phase == "loading") return read_members<RunnerLine, RunnerLoading>(*object);
  if (phase == "failed") return read_members<RunnerLine, RunnerFailed>(*object);
  if (phase != "ready")
    return fail(Code::NotFound, fmt::format("unknown phase \"{}\"", phase.substr(0, 40)));
  const json::Object* info = reader.object("info");
  if (info == nullptr) return fail(Code::InvalidArgument, "phase ready without info");
  return read_members<RunnerLine, RunnerInfo>(*info);
}

void FrameReader::feed(std::string_view chunk) {
  if (broken_) return;
  buffer_.erase(0, std::exchange(begin_, 0));
  buffer_ += chunk;
}

Result<std::optional<std::string>> FrameReader::next() {
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  if (!broken_ && rest.size() < kHeaderBytes) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = 0; !broken_ && i < kHeaderBytes; ++i)
    length = length << 8 | static_cast<unsigned char>(rest[i]);
  if (broken_ || length == 0 || length > kAgentFrameMax) {
    broken_ = true;
    buffer_.clear();
    begin_ = 0;
    return fail(Code::InvalidArgument,
                fmt::format("a frame of {} bytes; the stream is no agent's", length));
  }
  if (rest.size() < kHeaderBytes + length) return std::nullopt;
  std::string frame(rest.substr(kHeaderBytes, length));
  begin_ += kHeaderBytes + length;
  return frame;
}

}  // namespace flotilla::api
