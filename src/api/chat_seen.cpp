#include "api/chat_seen.h"

#include <fmt/format.h>

#include "api/json.h"
#include "api/json_members.h"
#include "api/stream_events.h"

namespace flotilla::api {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// What is no object has no members.
const json::Object& object_in(const json::Value& from) {
  static const json::Object nothing;
  return from.is_object() ? from.get_object() : nothing;
}

const json::Value* find(const json::Value& from, std::string_view name) {
  return json::member(object_in(from), name);
}

std::string text_at(const json::Value& from, std::string_view name) {
  return json::text_of(object_in(from), name);
}

std::int64_t count_at(const json::Value& from, std::string_view name) {
  return json::integer_of(object_in(from), name);
}

void read_usage(const json::Value& from, ChatSeen& seen) {
  const json::Value* usage = find(from, "usage");
  if (usage == nullptr || !usage->is_object()) return;
  seen.has_usage = true;
  seen.usage.prompt_tokens = count_at(*usage, "prompt_tokens");
  seen.usage.completion_tokens = count_at(*usage, "completion_tokens");
  seen.total_tokens = count_at(*usage, "total_tokens");
}

// Of an answer or an event with more than one choice the first one is read.
const json::Value* choice_of(const json::Value& from) {
  const json::Value* choices = find(from, "choices");
  const bool some = choices != nullptr && choices->is_array() && !choices->get_array().empty();
  return some ? &choices->get_array().front() : nullptr;
}

void fault(ChatSeen& seen, std::string what) {
  if (seen.fault.empty()) seen.fault = std::move(what);
}

// What the events before this one said.
struct Stream {
  ChatSeen seen;
  std::string id;
  bool begun = false;
  bool done = false;
};

void add_choice(Stream& stream, const json::Value& choice) {
  ChatSeen& seen = stream.seen;
  const json::Value* delta = find(choice, "delta");
  if (delta == nullptr) return fault(seen, "a choice has no delta");
  if (!stream.begun && text_at(*delta, "role") != "assistant") {
    fault(seen, "the first delta has no role \"assistant\"");
  }
  stream.begun = true;
  const std::string text = text_at(*delta, "reasoning_content") + text_at(*delta, "content");
  if (!text.empty() && !seen.finish_reason.empty()) fault(seen, "text comes after finish_reason");
  seen.text += text;
  const std::string reason = text_at(choice, "finish_reason");
  if (reason.empty()) return;
  if (!seen.finish_reason.empty()) fault(seen, "finish_reason comes twice");
  seen.finish_reason = reason;
}

void add_event(Stream& stream, std::string_view data) {
  ChatSeen& seen = stream.seen;
  if (stream.done) return fault(seen, "something comes after [DONE]");
  stream.done = data == "[DONE]";
  if (stream.done) return;
  const auto event = json::parse(data);
  if (!event) return fault(seen, "an event is not JSON: " + event.error().message);
  if (find(*event, "error") != nullptr) return fault(seen, "an error: " + std::string(data));
  if (text_at(*event, "object") != "chat.completion.chunk") {
    fault(seen, fmt::format("object is \"{}\", not \"chat.completion.chunk\"",
                            text_at(*event, "object")));
  }
  const std::string id = text_at(*event, "id");
  if (stream.id.empty()) stream.id = id;
  if (id.empty() || id != stream.id) fault(seen, "not all events have the same id");
  read_usage(*event, seen);
  if (const json::Value* choice = choice_of(*event); choice != nullptr) add_choice(stream, *choice);
}

void look_at_the_whole(ChatSeen& seen) {
  if (seen.finish_reason.empty()) fault(seen, "there is no finish_reason");
  if (seen.text.find(kReplacement) != std::string::npos) fault(seen, "the text has U+FFFD");
}

}  // namespace

ChatSeen read_whole_chat(std::string_view body) {
  ChatSeen seen;
  const auto answer = json::parse(body);
  if (!answer) {
    seen.fault = "the answer is not JSON: " + answer.error().message;
    return seen;
  }
  const json::Value* choice = choice_of(*answer);
  const json::Value* message = choice != nullptr ? find(*choice, "message") : nullptr;
  if (message == nullptr) {
    seen.fault = "the answer has no choice with a message";
    return seen;
  }
  if (text_at(*answer, "object") != "chat.completion") fault(seen, "object is not chat.completion");
  if (text_at(*answer, "id").empty()) fault(seen, "the answer has no id");
  if (text_at(*message, "role") != "assistant") fault(seen, "the role is not \"assistant\"");
  seen.text = text_at(*message, "reasoning_content") + text_at(*message, "content");
  seen.finish_reason = text_at(*choice, "finish_reason");
  read_usage(*answer, seen);
  look_at_the_whole(seen);
  return seen;
}

ChatSeen read_streamed_chat(std::string_view body) {
  Stream stream;
  for (const std::string_view data : stream_events(body)) add_event(stream, data);
  if (!stream.done) fault(stream.seen, "the stream does not end with [DONE]");
  look_at_the_whole(stream.seen);
  return std::move(stream.seen);
}

}  // namespace flotilla::api
