#include "api/anthropic_messages.h"

#include <fmt/format.h>

#include "api/fields_of_theirs.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kMessagesMax = 10'000;
constexpr std::size_t kBlocksMax = 10'000;
constexpr std::size_t kTextMax = 32 << 20;  // the body's own limit
constexpr std::size_t kNameMax = 256;

json::Object message(std::string_view role, std::string_view content) {
  return json::Object{{"role", role}, {"content", content}};
}

void refuse_block(json::Reader& block, std::string_view type, const std::string& path) {
  for (const std::string_view kind : {"image", "document", "search_result", "container_upload"}) {
    if (type == kind) {
      return block.fault().set(
          path, fmt::format("{} is of type \"{}\", but this model takes no {} input; send text",
                            path, type, type == "image" ? "image" : "file"));
    }
  }
  block.fault().set(path,
                    fmt::format("{} is of type \"{}\", which is not supported here", path, type));
}

// The text of a list of text blocks, one after another.
std::string text_of_blocks(json::Reader& in, std::string_view name) {
  const json::Value* value = in.find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return in.string(name, kTextMax).value_or("");
  const json::Array* blocks = in.array(name, kBlocksMax);
  std::string text;
  for (std::size_t i = 0; blocks != nullptr && i < blocks->size() && !in.fault(); ++i) {
    const std::string path = json::item_path(in.path_of(name), i);
    const json::Object* object = (*blocks)[i].if_object();
    if (object == nullptr) {
      in.fault().set(path, fmt::format("{} is {}; it must be a block like "
                                       "{{\"type\":\"text\",\"text\":\"…\"}}",
                                       path, json::shown((*blocks)[i])));
      break;
    }
    json::Reader block(*object, in.fault(), path);
    block.require("type", "\"text\"");
    const std::string type = block.string("type", kNameMax).value_or("");
    if (type == "text") {
      block.require("text", "a string");
      text += block.string("text", kTextMax).value_or("");
      read_cache_control(block);
    } else if (!type.empty()) {
      refuse_block(block, type, path);
    }
  }
  return text;
}

// What a call and its result may have beside whom they are between.
void read_call_extras(json::Reader& block) {
  refuse_fields(block, {"toolset_name"});
  read_caller(block);
}

// One message's blocks, as they are read.
class Blocks {
 public:
  Blocks(json::Array& out, bool assistant) : out_(out), assistant_(assistant) {}

  void read(const json::Object& object, const std::string& path, json::Fault& fault) {
    json::Reader block(object, fault, path);
    block.require("type", "text, tool_use, tool_result or thinking");
    const std::string type = block.string("type", kNameMax).value_or("");
    if (type.empty()) return;
    read_cache_control(block);
    if (type == "text") {
      block.require("text", "a string");
      has_text_ = true;
      text_ += block.string("text", kTextMax).value_or("");
    } else if (assistant_ && type == "tool_use") {
      read_tool_use(block);
    } else if (assistant_ && type == "thinking") {
      reasoning_ += block.string("thinking", kTextMax).value_or("");
      block.string("signature", kTextMax);
    } else if (assistant_ && type == "redacted_thinking") {
      block.string("data", kTextMax);  // nothing that a model here could read
    } else if (!assistant_ && type == "tool_result") {
      read_tool_result(block);
    } else {
      refuse_block(block, type, path);
    }
  }

  void finish() {
    if (!assistant_) return flush();
    json::Object made = message("assistant", text_);
    if (!reasoning_.empty()) made["reasoning_content"] = reasoning_;
    if (!calls_.empty()) {
      if (text_.empty()) made["content"] = nullptr;
      made["tool_calls"] = std::move(calls_);
    }
    out_.push_back(std::move(made));
  }

 private:
  void read_tool_use(json::Reader& block) {
    block.require("id", "a string");
    block.require("name", "a string");
    block.require("input", "an object");
    const json::Object* input = block.object("input");
    read_call_extras(block);
    calls_.push_back(json::Object{
        {"id", block.string("id", kNameMax).value_or("")},
        {"type", "function"},
        {"function",
         json::Object{{"name", block.string("name", kNameMax).value_or("")},
                      {"arguments", input == nullptr ? "{}" : json::to_text(*input)}}}});
  }

  void read_tool_result(json::Reader& block) {
    flush();
    block.require("tool_use_id", "a string");
    read_call_extras(block);
    std::string content = text_of_blocks(block, "content");
    // The one way to tell a model of it.
    if (block.boolean("is_error").value_or(false)) content = "Error: " + content;
    json::Object made = message("tool", content);
    made["tool_call_id"] = block.string("tool_use_id", kNameMax).value_or("");
    out_.push_back(std::move(made));
  }

  // A user's text stands where it stood among the tool results.
  void flush() {
    if (!has_text_) return;
    out_.push_back(message("user", text_));
    text_.clear();
    has_text_ = false;
  }

  json::Array& out_;
  const bool assistant_;
  bool has_text_ = false;
  std::string text_;
  std::string reasoning_;
  json::Array calls_;
};

void read_message(const json::Object& object, const std::string& path, json::Fault& fault,
                  json::Array& out) {
  json::Reader in(object, fault, path);
  in.require("role", "user, assistant or system");
  in.require("content", "a string or a list of blocks");
  const std::string role = in.choice("role", {"user", "assistant", "system"}).value_or("");
  refuse_fields(in, {"clear_at", "output_config"});
  const json::Value* content = in.find("content");
  if (fault || content == nullptr) return;
  if (content->is_string()) {
    out.push_back(message(role, in.string("content", kTextMax).value_or("")));
    return;
  }
  const json::Array* list = in.array("content", kBlocksMax);
  if (list == nullptr) return;
  if (role == "system") {
    out.push_back(message(role, text_of_blocks(in, "content")));
    return;
  }
  if (list->empty() && role == "user") return in.refuse("content", "must hold at least one block");
  Blocks blocks(out, role == "assistant");
  for (std::size_t i = 0; i < list->size() && !fault; ++i) {
    const std::string at = json::item_path(in.path_of("content"), i);
    if (const json::Object* block = (*list)[i].if_object()) {
      blocks.read(*block, at, fault);
    } else {
      fault.set(at, fmt::format("{} is {}; it must be an object with a type", at,
                                json::shown((*list)[i])));
    }
  }
  blocks.finish();
}

}  // namespace

json::Array read_anthropic_messages(json::Reader& in, bool& continues) {
  json::Array out;
  if (std::string system = text_of_blocks(in, "system"); !system.empty())
    out.push_back(message("system", system));
  in.require("messages", "a list of messages");
  const json::Array* list = in.array("messages", kMessagesMax);
  if (list == nullptr) return out;
  if (list->empty()) {
    in.refuse("messages", "must hold at least one message");
    return out;
  }
  for (std::size_t i = 0; i < list->size() && !in.fault(); ++i) {
    const std::string path = json::item_path("messages", i);
    if (const json::Object* object = (*list)[i].if_object()) {
      read_message(*object, path, in.fault(), out);
    } else {
      in.fault().set(path, fmt::format("{} is {}; it must be an object with role and content", path,
                                       json::shown((*list)[i])));
    }
  }
  if (out.empty()) return out;
  const json::Object& last = out.back().get_object();
  continues = last.at("role") == "assistant" && !last.contains("tool_calls");
  return out;
}

}  // namespace flotilla::api
