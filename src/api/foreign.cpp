#include "api/foreign.h"

#include "api/error_body.h"
#include "api/json.h"
#include "api/json_answer.h"

namespace flotilla::api {
namespace {

std::int64_t count_of(const json::Object& object, std::string_view name) {
  const json::Value* value = object.if_contains({name.data(), name.size()});
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

// Whether any choice has what `member` names, neither null nor "".
bool any_choice(const json::Object& chunk, bool (*has)(const json::Object&)) {
  const json::Value* choices = chunk.if_contains("choices");
  if (choices == nullptr || !choices->is_array()) return false;
  for (const json::Value& choice : choices->get_array()) {
    if (choice.is_object() && has(choice.get_object())) return true;
  }
  return false;
}

bool has_finish(const json::Object& choice) {
  const json::Value* reason = choice.if_contains("finish_reason");
  return reason != nullptr && reason->is_string();
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

Result<std::string> foreign_chat_body(std::string_view client_body,
                                      std::string_view upstream_model) {
  auto body = json::parse_object(client_body);
  if (!body) return fail(body.error());
  if (body->contains("raw")) {
    return fail(Error{.code = Code::InvalidArgument,
                      .message = "this model is served by another engine, which gets chat requests "
                                 "only; use /v1/chat/completions",
                      .param = "prompt",
                      .reason = "not_supported_by_engine"});
  }
  for (const char* ours : {"session_id", "timeout_s"}) body->erase(ours);
  (*body)["model"] = upstream_model;
  (*body)["stream"] = true;
  (*body)["stream_options"] = json::Object{{"include_usage", true}};
  return json::to_text(*body);
}

std::string probe_chat_body(std::string_view upstream_model) {
  json::Object message{{"role", "user"}, {"content", "hi"}};
  return json::to_text(json::Object{
      {"model", upstream_model}, {"messages", json::Array{std::move(message)}}, {"max_tokens", 1}});
}

std::string first_model(std::string_view models_json) {
  const auto object = json::parse_object(models_json);
  if (!object) return {};
  const json::Value* data = object->if_contains("data");
  if (data == nullptr || !data->is_array() || data->get_array().empty()) return {};
  const json::Object* first = data->get_array().front().if_object();
  const json::Value* id = first == nullptr ? nullptr : first->if_contains("id");
  return id != nullptr && id->is_string() ? std::string(id->get_string()) : std::string();
}

ForeignChunks::ForeignChunks(AnswerHead head, ServedBy served, bool show_usage)
    : head_(std::move(head)), served_(std::move(served)), show_usage_(show_usage) {}

bool ForeignChunks::is_content(std::string_view data) {
  return data.find("\"content\"") != std::string_view::npos;
}

Result<std::string> ForeignChunks::rewrite(std::string_view data, double elapsed_ms) {
  if (data == "[DONE]") {
    done_ = true;
    return std::string();
  }
  auto chunk = json::parse_answer_object(data);
  if (!chunk)
    return fail(Code::BadGateway, "the engine's stream is not JSON: " + chunk.error().message);
  if (chunk->contains("error")) {
    Error error = parse_error_body(502, data);
    error.code = Code::BadGateway;
    return fail(std::move(error));
  }
  if (const json::Value* usage = chunk->if_contains("usage");
      usage != nullptr && usage->is_object()) {
    usage_ = usage_of(usage->get_object());
    served_.cached_tokens = usage_.cached_tokens;
    const double decode_ms = elapsed_ms - (served_.ttft_ms - served_.queued_ms);
    if (decode_ms > 0 && usage_.completion_tokens > 1) {
      served_.tokens_per_s = static_cast<double>(usage_.completion_tokens - 1) / decode_ms * 1000;
    }
  }
  const json::Value* choices = chunk->if_contains("choices");
  const bool usage_only =
      choices == nullptr || !choices->is_array() || choices->get_array().empty();
  if (usage_only && !show_usage_) return std::string();
  const bool finishes = any_choice(*chunk, has_finish);
  finished_ = finished_ || finishes;
  (*chunk)["id"] = head_.id;
  (*chunk)["created"] = head_.created;
  (*chunk)["model"] = head_.model;
  if (!show_usage_) chunk->erase("usage");
  chunk->erase("x_flotilla");
  std::string out = json::to_text(*chunk);
  if (show_usage_ ? usage_only : finishes) {
    out.pop_back();
    out += ",\"x_flotilla\":";
    append_served_by(out, served_);
    out += '}';
  }
  return out;
}

}  // namespace flotilla::api
