#include "api/openai_messages.h"

#include <fmt/format.h>

#include "api/fields_of_theirs.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kMessagesMax = 10'000;
constexpr std::size_t kPartsMax = 10'000;
constexpr std::size_t kToolCallsMax = 128;
constexpr std::size_t kTextMax = 32 << 20;  // the body's own limit

// "image_url" -> "image"
std::string_view kind_of(std::string_view type) {
  if (type.find("image") != std::string_view::npos) return "image";
  if (type.find("audio") != std::string_view::npos) return "audio";
  if (type.find("file") != std::string_view::npos) return "file";
  return {};
}

void append_part(const json::Value& part, const std::string& path, json::Fault& fault,
                 std::string& text) {
  const json::Object* object = part.if_object();
  if (object == nullptr) {
    return fault.set(path, fmt::format("{} is {}; a part must be an object like "
                                       "{{\"type\":\"text\",\"text\":\"…\"}}",
                                       path, json::shown(part)));
  }
  json::Reader in(*object, fault, path);
  const auto type = in.string("type", 100);
  if (!type) return in.require("type", "\"text\"");
  if (*type == "text" || *type == "refusal") {
    in.require(*type, "a string");
    text += in.string(*type, kTextMax).value_or("");
    return read_cache_breakpoint(in);
  }
  const std::string_view kind = kind_of(*type);
  if (kind.empty()) return in.refuse("type", "must be \"text\"");
  fault.set(path, fmt::format("{} is of type \"{}\", but this model takes no {} input; send text",
                              path, *type, kind));
}

void read_content(json::Reader& in, ChatMessage& message) {
  const json::Value* content = in.find("content");
  if (content == nullptr) {
    if (message.role != "assistant") {
      return in.require("content", "a string or a list of parts");
    }
    if (message.tool_calls.empty() && message.reasoning_content.empty() &&
        message.content.empty()) {
      in.require("content", "a string, unless the message has tool_calls");
    }
    return;
  }
  if (const json::Array* parts = content->if_array()) {
    if (in.array("content", kPartsMax) == nullptr) return;
    const std::string path = in.path_of("content");
    for (std::size_t i = 0; i < parts->size(); ++i) {
      append_part((*parts)[i], json::item_path(path, i), in.fault(), message.content);
    }
  } else if (content->is_string()) {
    message.content = in.string("content", kTextMax).value_or("");
  } else {
    in.refuse("content", "must be a string or a list of parts");
  }
}

void read_tool_calls(json::Reader& in, ChatMessage& message) {
  const json::Array* calls = in.array("tool_calls", kToolCallsMax);
  if (calls == nullptr) return;
  for (std::size_t i = 0; i < calls->size(); ++i) {
    const std::string path = json::item_path(in.path_of("tool_calls"), i);
    const json::Object* object = (*calls)[i].if_object();
    if (object == nullptr) {
      return in.fault().set(
          path, fmt::format("{} is {}; it must be an object", path, json::shown((*calls)[i])));
    }
    json::Reader call(*object, in.fault(), path);
    call.choice("type", {"function"});
    call.require("function", "an object");
    const json::Object* inner = call.object("function");
    if (inner == nullptr) return;
    json::Reader function(*inner, in.fault(), path + ".function");
    function.require("name", "a string");
    message.tool_calls.push_back({.id = call.string("id", 256).value_or(""),
                                  .name = function.string("name", 256).value_or(""),
                                  .arguments = function.string("arguments").value_or("{}")});
  }
}

ChatMessage read_message(const json::Object& object, const std::string& path, json::Fault& fault) {
  json::Reader in(object, fault, path);
  ChatMessage message;
  in.require("role", "system, developer, user, assistant or tool");
  message.role =
      in.choice("role", {"system", "developer", "user", "assistant", "tool"}).value_or("");
  if (message.role == "developer") message.role = "system";
  message.name = in.string("name", 256).value_or("");
  if (message.role == "tool") message.tool_call_id = in.string("tool_call_id", 256).value_or("");
  if (message.role == "assistant") {
    message.reasoning_content = in.string("reasoning_content", kTextMax).value_or("");
    read_tool_calls(in, message);
    refuse_fields(in, {"audio", "function_call"});
    // What it said instead of an answer.
    if (const auto refusal = in.string("refusal", kTextMax); in.find("content") == nullptr)
      message.content = refusal.value_or("");
  }
  read_content(in, message);
  return message;
}

}  // namespace

std::vector<ChatMessage> read_messages(json::Reader& in) {
  in.require("messages", "a list of messages");
  const json::Array* list = in.array("messages", kMessagesMax);
  if (list == nullptr) return {};
  if (list->empty()) {
    in.refuse("messages", "must hold at least one message");
    return {};
  }
  std::vector<ChatMessage> messages;
  messages.reserve(list->size());
  for (std::size_t i = 0; i < list->size() && !in.fault(); ++i) {
    const std::string path = json::item_path("messages", i);
    if (const json::Object* object = (*list)[i].if_object()) {
      messages.push_back(read_message(*object, path, in.fault()));
    } else {
      in.fault().set(path, fmt::format("{} is {}; it must be an object with role and content", path,
                                       json::shown((*list)[i])));
    }
  }
  return messages;
}

}  // namespace flotilla::api
