#include "api/runner_protocol.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/json.h"
#include "api/json_members.h"
#include "api/json_text.h"
#include "api/raw_prompts.h"

namespace flotilla::api {
namespace {

constexpr int kChoicesMax = kRawChoicesMax;
constexpr std::size_t kTokensMax = 1 << 22;

template <class T>
bool read_whole(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stopped == end;
}

void append_ids(std::string& out, const TokenIds& ids) {
  char digits[12];
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += ',';
    const auto written = std::to_chars(digits, digits + sizeof digits, ids[i]);
    out.append(digits, written.ptr);
  }
}

std::optional<int> choice_of(std::string_view name) {
  int choice = -1;
  if (!read_whole(name, choice) || choice < 0 || choice >= kChoicesMax) return std::nullopt;
  return choice;
}

Result<TokenIds> read_ids(const json::Value& value, int vocabulary) {
  const json::Array* items = value.if_array();
  if (items == nullptr || items->size() > kTokensMax) {
    return fail(Code::InvalidArgument, "resume: a choice's tokens must be a list of token ids");
  }
  TokenIds ids;
  ids.reserve(items->size());
  for (const json::Value& item : *items) {
    if (!item.is_int64() || item.get_int64() < 0 || item.get_int64() >= vocabulary) {
      return fail(Code::InvalidArgument,
                  fmt::format("resume: token {} is not one of this model's 0 to {}",
                              json::shown(item), vocabulary - 1));
    }
    ids.push_back(static_cast<std::int32_t>(item.get_int64()));
  }
  return ids;
}

double number_of(const json::Object& object, std::string_view name) {
  const json::Value* value = object.if_contains({name.data(), name.size()});
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

}  // namespace

std::string resume_json(const Resume& resume) {
  std::string out = "{";
  for (const auto& [choice, ids] : resume.tokens) {
    fmt::format_to(std::back_inserter(out), "{}\"{}\":[", out.size() > 1 ? "," : "", choice);
    append_ids(out, ids);
    out += ']';
  }
  if (!resume.finished.empty()) {
    out += out.size() > 1 ? ",\"finished\":[" : "\"finished\":[";
    append_ids(out, TokenIds(resume.finished.begin(), resume.finished.end()));
    out += ']';
  }
  out += '}';
  return out;
}

Result<Resume> parse_resume(std::string_view text, int vocabulary) {
  // From our gateway: what was generated, of all choices.
  const auto object = json::parse_object(text, {.values_max = SIZE_MAX});
  if (!object) return fail(Code::InvalidArgument, "resume: " + object.error().message);
  Resume resume;
  for (const auto& member : *object) {
    const std::string_view name(member.key().data(), member.key().size());
    if (name == "finished") {
      auto choices = read_ids(member.value(), kChoicesMax);
      if (!choices) return fail(choices.error());
      resume.finished.insert(choices->begin(), choices->end());
      continue;
    }
    const auto choice = choice_of(name);
    if (!choice)
      return fail(Code::InvalidArgument, "resume: a key is not a choice: " + json_string(name));
    auto ids = read_ids(member.value(), vocabulary);
    if (!ids) return fail(ids.error());
    resume.tokens[*choice] = std::move(*ids);
  }
  return resume;
}

void append_token_comment(std::string& out, int choice, const TokenIds& ids) {
  fmt::format_to(std::back_inserter(out), FMT_STRING(": t {} "), choice);
  append_ids(out, ids);
  out += '\n';
}

std::optional<int> read_token_comment(std::string_view line, TokenIds& ids) {
  constexpr std::string_view kBegin = ": t ";
  ids.clear();
  if (!line.starts_with(kBegin)) return std::nullopt;
  line.remove_prefix(kBegin.size());
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto choice = choice_of(line.substr(0, space));
  if (!choice) return std::nullopt;
  const char* at = line.data() + space + 1;
  const char* const end = line.data() + line.size();
  while (true) {
    std::int32_t id = -1;
    const auto [stopped, error] = std::from_chars(at, end, id);
    if (error != std::errc{} || id < 0) return std::nullopt;
    ids.push_back(id);
    if (stopped == end) return choice;
    if (*stopped != ',') return std::nullopt;
    at = stopped + 1;
  }
}

std::optional<TokenComment> parse_token_comment(std::string_view line) {
  TokenComment comment;
  const auto choice = read_token_comment(line, comment.ids);
  if (!choice) return std::nullopt;
  comment.choice = *choice;
  return comment;
}

std::optional<int> finished_choice(std::string_view block) {
  // Quotes inside a text are escaped, so neither word can be part of one.
  if (block.find(R"("finish_reason":")") == std::string_view::npos) return std::nullopt;
  constexpr std::string_view kIndex = R"("choices":[{"index":)";
  const std::size_t at = block.find(kIndex);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = block.substr(at + kIndex.size());
  return choice_of(rest.substr(0, rest.find_first_not_of("0123456789")));
}

std::string usage_comment(const RunnerUsage& usage) {
  std::string out = R"(: u {"usage":)";
  append_usage(out, usage.usage);
  fmt::format_to(std::back_inserter(out), R"(,"cached_tokens":{},"timings":{{"ttft_ms":)",
                 usage.usage.cached_tokens);
  append_number(out, usage.ttft_ms);
  out += R"(,"tokens_per_s":)";
  append_number(out, usage.tokens_per_s);
  out += R"(,"prompt_ms":)";
  append_number(out, usage.prompt_ms);
  fmt::format_to(std::back_inserter(out), R"(,"prompt_passes":{}}}}})", usage.prompt_passes);
  out += "\n\n";
  return out;
}

std::optional<RunnerUsage> parse_usage_comment(std::string_view line) {
  constexpr std::string_view kBegin = ": u ";
  if (!line.starts_with(kBegin)) return std::nullopt;
  const auto object = json::parse_object(line.substr(kBegin.size()));
  if (!object) return std::nullopt;
  RunnerUsage out;
  if (const json::Value* usage = object->if_contains("usage");
      usage != nullptr && usage->is_object()) {
    out.usage.prompt_tokens = json::integer_of(usage->get_object(), "prompt_tokens");
    out.usage.completion_tokens = json::integer_of(usage->get_object(), "completion_tokens");
  }
  out.usage.cached_tokens = json::integer_of(*object, "cached_tokens");
  if (const json::Value* timings = object->if_contains("timings");
      timings != nullptr && timings->is_object()) {
    out.ttft_ms = number_of(timings->get_object(), "ttft_ms");
    out.tokens_per_s = number_of(timings->get_object(), "tokens_per_s");
    out.prompt_ms = number_of(timings->get_object(), "prompt_ms");
    out.prompt_passes = static_cast<int>(json::integer_of(timings->get_object(), "prompt_passes"));
  }
  return out;
}

namespace {

template <std::size_t N>
std::size_t bucket_of(const std::array<double, N>& edges, double value) {
  const auto edge = std::ranges::lower_bound(edges, value);
  return static_cast<std::size_t>(edge - edges.begin());
}

template <std::size_t N>
void read_counts(const json::Object& object, std::string_view name,
                 std::array<std::uint64_t, N>& counts) {
  const json::Value* found = object.if_contains(name);
  const json::Array* values = found != nullptr ? found->if_array() : nullptr;
  if (values == nullptr || values->size() != N) return;
  for (std::size_t i = 0; i < N; ++i) {
    boost::system::error_code wrong;
    const auto count = (*values)[i].to_number<std::uint64_t>(wrong);
    if (!wrong) counts[i] = count;
  }
}

PassCounts read_passes(const json::Object& object) {
  PassCounts counts;
  read_counts(object, "by_ms", counts.by_ms);
  read_counts(object, "by_width", counts.by_width);
  counts.ms_sum = number_of(object, "ms_sum");
  counts.width_sum = static_cast<std::uint64_t>(json::integer_of(object, "width_sum"));
  return counts;
}

}  // namespace

void PassCounts::add(double ms, std::size_t width) {
  ++by_ms[bucket_of(kMsEdges, ms)];
  ++by_width[bucket_of(kWidthEdges, static_cast<double>(width))];
  ms_sum += ms;
  width_sum += width;
}

std::string to_json(const RunnerEvent& event) {
  std::string out = fmt::format(R"({{"step":{},"step_ms_max":)", event.step);
  append_number(out, event.step_ms_max);
  fmt::format_to(std::back_inserter(out),
                 R"(,"running":{},"waiting":{},"kv_free":{},)"
                 R"("generated_tokens":{},"prompt_tokens":{},"cached_tokens":{},"tokens_per_s":)",
                 event.running, event.waiting, event.kv_free, event.generated_tokens,
                 event.prompt_tokens, event.cached_tokens);
  append_number(out, event.tokens_per_s);
  out += R"(,"step_overhead":)";
  append_number(out, event.step_overhead);
  fmt::format_to(std::back_inserter(out), R"(,"resident_bytes":{},"trims":{},"trimmed":{})",
                 event.resident_bytes, event.trims, json_string(event.trimmed));
  fmt::format_to(std::back_inserter(out),
                 R"(,"passes":{{"by_ms":[{}],"by_width":[{}],"width_sum":{},"ms_sum":)",
                 fmt::join(event.passes.by_ms, ","), fmt::join(event.passes.by_width, ","),
                 event.passes.width_sum);
  append_number(out, event.passes.ms_sum);
  fmt::format_to(std::back_inserter(out), R"(}},"stored":{},"stored_bytes":{},"disk_bytes":{})",
                 event.stored, event.stored_bytes, event.disk_bytes);
  const RunnerDrafts& drafts = event.drafts;
  if (!drafts.mode.empty()) {
    fmt::format_to(
        std::back_inserter(out),
        R"(,"drafts":{{"mode":{},"reason":{},"drafted_tokens":{},"accepted_tokens":{}}})",
        json_string(drafts.mode), json_string(drafts.reason), drafts.drafted_tokens,
        drafts.accepted_tokens);
  }
  out += '}';
  return out;
}

Result<RunnerEvent> parse_runner_event(std::string_view text) {
  const auto object = json::parse_object(text);
  if (!object) return fail(Code::BadGateway, "a runner's event: " + object.error().message);
  RunnerEvent event;
  event.step = static_cast<std::uint64_t>(json::integer_of(*object, "step"));
  event.step_ms_max = number_of(*object, "step_ms_max");
  event.running = static_cast<int>(json::integer_of(*object, "running"));
  event.waiting = static_cast<int>(json::integer_of(*object, "waiting"));
  event.kv_free = json::integer_of(*object, "kv_free");
  event.generated_tokens = json::integer_of(*object, "generated_tokens");
  event.prompt_tokens = json::integer_of(*object, "prompt_tokens");
  event.cached_tokens = json::integer_of(*object, "cached_tokens");
  event.tokens_per_s = number_of(*object, "tokens_per_s");
  event.step_overhead = number_of(*object, "step_overhead");
  event.resident_bytes = json::integer_of(*object, "resident_bytes");
  event.trims = static_cast<int>(json::integer_of(*object, "trims"));
  event.trimmed = json::text_of(*object, "trimmed");
  event.stored = static_cast<int>(json::integer_of(*object, "stored"));
  event.stored_bytes = json::integer_of(*object, "stored_bytes");
  event.disk_bytes = json::integer_of(*object, "disk_bytes");
  if (const json::Value* passes = object->if_contains("passes"); passes && passes->is_object()) {
    event.passes = read_passes(passes->get_object());
  }
  if (const json::Value* drafts = object->if_contains("drafts"); drafts && drafts->is_object()) {
    const json::Object& of = drafts->get_object();
    event.drafts = {.mode = json::text_of(of, "mode"),
                    .reason = json::text_of(of, "reason"),
                    .drafted_tokens = json::integer_of(of, "drafted_tokens"),
                    .accepted_tokens = json::integer_of(of, "accepted_tokens")};
  }
  return event;
}

namespace {

std::string info_json(const RunnerInfo& info) {
  json::Object object;
  object["protocol"] = info.protocol;
  object["description"] = info.description;
  object["quantization"] = info.quantization;
  object["context"] = info.context;
  object["context_trained"] = info.context_trained;
  object["width"] = info.width;
  object["width_reason"] = info.width_reason;
  object["batch"] = info.batch;
  object["batch_reason"] = info.batch_reason;
  object["model_bytes"] = info.model_bytes;
  object["kv_bytes"] = info.kv_bytes;
  object["numerics"] = info.numerics;
  object["exact_resume"] = info.exact_resume;
  object["kernels"] = info.kernels;
  return json::to_text(object);
}

struct LineWriter {
  std::string operator()(const RunnerLoading& loading) const {
    return fmt::format("{{\"phase\":\"loading\",\"loaded_bytes\":{},\"total_bytes\":{}}}\n",
                       loading.loaded_bytes, loading.total_bytes);
  }
  std::string operator()(const RunnerInfo& info) const {
    return "{\"phase\":\"ready\",\"info\":" + info_json(info) + "}\n";
  }
  std::string operator()(const RunnerFailed& failed) const {
    return "{\"phase\":\"failed\",\"error\":" + json_string(failed.error) + "}\n";
  }
};

}  // namespace

std::string runner_line(const RunnerLine& line) { return std::visit(LineWriter{}, line); }

}  // namespace flotilla::api
