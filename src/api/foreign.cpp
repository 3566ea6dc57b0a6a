#include "api/foreign.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/error_body.h"
#include "api/json.h"
#include "api/json_answer.h"

namespace flotilla::api {
namespace {

// Never below 0, nor more than any answer has: what an engine says is charged to keys.
std::int64_t count_of(const json::Object& object, std::string_view name) {
  constexpr std::int64_t kMost = 1 << 30;
  const json::Value* value = object.if_contains({name.data(), name.size()});
  if (value == nullptr || !value->is_int64()) return 0;
  return std::clamp<std::int64_t>(value->get_int64(), 0, kMost);
}

// OpenAI's words for an end. Empty: the engine says that this is no answer.
std::string_view finish_of(std::string_view theirs) {
  constexpr std::pair<std::string_view, std::string_view> others[] = {
      {"eos", "stop"},
      {"eos_token", "stop"},
      {"stop_sequence", "stop"},
      {"end_turn", "stop"},
      {"max_tokens", "length"},
      {"repetition", "length"},
      {"function_call", "tool_calls"},
      {"tool_use", "tool_calls"}};
  for (const std::string_view ours : {"stop", "length", "tool_calls", "content_filter"})
    if (theirs == ours) return ours;
  for (const auto& [other, ours] : others)
    if (theirs == other) return ours;
  return {};
}

bool says_something(const json::Value* value) {
  if (value == nullptr || value->is_null()) return false;
  if (const auto* text = value->if_string()) return !text->empty();
  if (const auto* list = value->if_array()) return !list->empty();
  return true;
}

struct ChoiceRead {
  std::int64_t index = 0;
  bool has_text = false;
  bool finishes = false;
};

// `begun`: choices whose role was told; some engines tell it with each chunk, and what adds the
// deltas up would write it as often.
Result<ChoiceRead> rewrite_choice(json::Value& value, std::set<std::int64_t>& begun) {
  ChoiceRead out;
  json::Object* choice = value.if_object();
  if (choice == nullptr) return out;
  out.index = count_of(*choice, "index");
  choice->erase("usage");  // some tell it here too
  if (json::Value* reason = choice->if_contains("finish_reason");
      reason != nullptr && reason->is_string()) {
    const std::string_view ours = finish_of(std::string_view(reason->get_string()));
    if (ours.empty()) {
      return fail(Code::BadGateway, fmt::format("the engine ended its answer with \"{}\"",
                                                std::string_view(reason->get_string())));
    }
    *reason = ours;
    out.finishes = true;
  }
  json::Value* part = choice->if_contains("delta");
  json::Object* delta = part == nullptr ? nullptr : part->if_object();
  if (delta == nullptr) return out;
  if (!begun.insert(out.index).second) delta->erase("role");
  if (json::Value* found = delta->if_contains("reasoning")) {
    json::Value thoughts = std::move(*found);
    delta->erase("reasoning");
    delta->emplace("reasoning_content", std::move(thoughts));  // unless it has one
  }
  for (const char* name : {"content", "reasoning_content", "tool_calls", "refusal"})
    out.has_text = out.has_text || says_something(delta->if_contains(name));
  return out;
}

Usage usage_of(const json::Object& object) {
  Usage usage{.prompt_tokens = count_of(object, "prompt_tokens"),
              .completion_tokens = count_of(object, "completion_tokens")};
  if (const json::Value* details = object.if_contains("prompt_tokens_details");
      details && details->is_object()) {
    usage.cached_tokens = count_of(details->get_object(), "cached_tokens");
  }
  return usage;
}

}  // namespace

std::string probe_chat_body(const ForeignEngine& engine, std::string_view text, int tokens) {
  json::Object message{{"role", "user"}, {"content", text}};
  return json::to_text(json::Object{{"model", engine.model},
                                    {"messages", json::Array{std::move(message)}},
                                    {"max_tokens", tokens},
                                    {"stream", true},
                                    {"stream_options", json::Object{{"include_usage", true}}}});
}

Result<void> check_probe_answer(int status, std::string_view body) {
  if (status != 200) {
    Error error = parse_error_body(status, body);
    error.message = fmt::format("status {}: {}", status, error.message);
    return fail(std::move(error));
  }
  ForeignChunks chunks({}, {}, {.usage = true});
  while (!body.empty()) {
    const std::string_view line = body.substr(0, body.find('\n'));
    body.remove_prefix(std::min(body.size(), line.size() + 1));
    constexpr std::string_view data = "data:";
    if (!line.starts_with(data)) continue;
    const auto begin = std::min(line.find_first_not_of(' ', data.size()), line.size());
    const auto end = line.find_last_not_of('\r');
    if (const auto piece = chunks.rewrite(line.substr(begin, end - begin + 1), 0); !piece)
      return fail(piece.error());
  }
  if (!chunks.complete()) return fail(Code::BadGateway, "its answer ended before it was whole");
  return {};
}

ListedModel first_model(std::string_view models_json) {
  const auto object = json::parse_object(models_json);
  if (!object) return {};
  const json::Value* data = object->if_contains("data");
  if (data == nullptr || !data->is_array() || data->get_array().empty()) return {};
  const json::Object* first = data->get_array().front().if_object();
  const auto text = [&](const char* name) {
    const json::Value* value = first == nullptr ? nullptr : first->if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->get_string())
                                                  : std::string();
  };
  return {.id = text("id"), .owned_by = text("owned_by")};
}

std::string_view engine_of_owner(std::string_view owned_by) {
  if (owned_by == "llamacpp") return "llama-server";
  if (owned_by == "vllm") return "vllm";
  if (owned_by == "library") return "ollama";
  return {};
}

ForeignChunks::ForeignChunks(AnswerHead head, ServedBy served, ForeignShown shown)
    : head_(std::move(head)), served_(std::move(served)), shown_(shown) {}

bool ForeignChunks::complete() const {
  return !finished_.empty() && std::ranges::includes(finished_, begun_);
}

Result<ForeignChunks::Piece> ForeignChunks::rewrite(std::string_view data, double elapsed_ms) {
  if (data == "[DONE]") {
    done_ = true;
    if (!shown_.usage || told_ || !complete()) return Piece{};
    Piece last{.chunk = json::to_text(json::Object{{"id", head_.id},
                                                   {"object", "chat.completion.chunk"},
                                                   {"created", head_.created},
                                                   {"model", head_.model},
                                                   {"choices", json::Array()}})};
    add_served(last.chunk);
    return last;
  }
  auto chunk = json::parse_answer_object(data);
  if (!chunk)
    return fail(Code::BadGateway, "the engine's stream is not JSON: " + chunk.error().message);
  if (const json::Value* found = chunk->if_contains("error");
      found != nullptr && !found->is_null()) {
    Error error = parse_error_body(502, data);
    error.code = Code::BadGateway;
    return fail(std::move(error));
  }
  json::Value* usage = chunk->if_contains("usage");
  const bool tells_usage = usage != nullptr && usage->is_object();
  if (tells_usage) {
    // Each has words of its own for what it had cached.
    json::keep_only(usage->get_object(), {"prompt_tokens", "completion_tokens", "total_tokens",
                                          "prompt_tokens_details", "completion_tokens_details"});
    if (!shown_.cached) usage->get_object().erase("prompt_tokens_details");
    usage_ = usage_of(usage->get_object());
    served_.cached_tokens = usage_.cached_tokens;
    const double decode_ms = elapsed_ms - (served_.ttft_ms - served_.queued_ms);
    if (decode_ms > 0 && usage_.completion_tokens > 1) {
      served_.tokens_per_s = static_cast<double>(usage_.completion_tokens - 1) / decode_ms * 1000;
    }
  }
  json::Value* choices = chunk->if_contains("choices");
  const bool usage_only =
      choices == nullptr || !choices->is_array() || choices->get_array().empty();
  // Without either it says nothing that a client knows: what a filter thinks of the prompt, say.
  if (usage_only && !(shown_.usage && tells_usage)) return Piece{};
  Piece piece{.chunk = {}, .has_text = usage_only};
  bool finishes = false;
  if (!usage_only) {
    for (json::Value& choice : choices->get_array()) {
      auto read = rewrite_choice(choice, begun_);
      if (!read) return fail(read.error());
      finishes = finishes || read->finishes;
      if (read->finishes) finished_.insert(read->index);
      piece.has_text = piece.has_text || read->has_text || read->finishes;
    }
  }
  (*chunk)["id"] = head_.id;
  (*chunk)["created"] = head_.created;
  (*chunk)["model"] = head_.model;
  (*chunk)["object"] = "chat.completion.chunk";  // some call their last one otherwise
  if (!shown_.usage) chunk->erase("usage");
  // Not theirs that look like ours, nor how long what took them and why (timings, prompt_progress).
  json::keep_only(*chunk, {"id", "object", "created", "model", "choices", "usage",
                           "system_fingerprint", "service_tier"});
  piece.chunk = json::to_text(*chunk);
  if (shown_.usage ? usage_only : finishes && complete()) {
    add_served(piece.chunk);
  }
  return piece;
}

void ForeignChunks::add_served(std::string& chunk) {
  told_ = true;
  chunk.pop_back();
  chunk += ",\"x_flotilla\":";
  append_served_by(chunk, served_);
  chunk += '}';
}

}  // namespace flotilla::api
