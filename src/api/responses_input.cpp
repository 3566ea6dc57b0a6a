#include "api/responses_input.h"

#include <fmt/format.h>

#include "api/fields_of_theirs.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kItemsMax = 10'000;
constexpr std::size_t kTextMax = 32 << 20;  // the body's own limit
constexpr std::size_t kNameMax = 256;

std::string_view kind_of(std::string_view type) {
  if (type == "input_image") return "image";
  if (type == "input_file") return "file";
  if (type == "input_audio") return "audio";
  return {};
}

// A text, or the parts of one.
std::string read_text(json::Reader& in, std::string_view name) {
  const json::Value* value = in.find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return in.string(name, kTextMax).value_or("");
  const json::Array* parts = in.array(name, kItemsMax);
  std::string text;
  for (std::size_t i = 0; parts != nullptr && i < parts->size() && !in.fault(); ++i) {
    const std::string path = json::item_path(in.path_of(name), i);
    const json::Object* object = (*parts)[i].if_object();
    if (object == nullptr) {
      in.fault().set(path, fmt::format("{} is {}; it must be an object like "
                                       "{{\"type\":\"input_text\",\"text\":\"…\"}}",
                                       path, json::shown((*parts)[i])));
      break;
    }
    json::Reader part(*object, in.fault(), path);
    part.require("type", "input_text");
    const std::string type = part.string("type", kNameMax).value_or("");
    if (type == "refusal") {
      text += part.string("refusal", kTextMax).value_or("");
    } else if (type == "input_text" || type == "output_text" || type == "text" ||
               type == "summary_text" || type == "reasoning_text") {
      part.require("text", "a string");
      text += part.string("text", kTextMax).value_or("");
      read_cache_breakpoint(part);
    } else if (const auto kind = kind_of(type); !kind.empty()) {
      in.fault().set(path, fmt::format("{} is of type \"{}\", but this model takes no {} input; "
                                       "send text",
                                       path, type, kind));
    } else if (!type.empty()) {
      part.refuse("type", "must be input_text, output_text or refusal");
    }
  }
  return text;
}

// What an item of an earlier answer brings with it; nothing of it goes into the prompt.
void read_echo(json::Reader& item) {
  item.string("id", kNameMax);
  item.string("phase", kNameMax);
  item.choice("status", {"in_progress", "completed", "incomplete"});
}

// What a call and its result may have beside whom they are between.
void read_call_extras(json::Reader& item) {
  refuse_fields(item, {"async", "namespace"});
  read_caller(item);
}

// Items become messages one by one; what an assistant said and called in a row is one message.
class Items {
 public:
  explicit Items(json::Array& out) : out_(out) {}

  void read(const json::Object& object, const std::string& path, json::Fault& fault) {
    json::Reader item(object, fault, path);
    const std::string type = item.string("type", kNameMax).value_or("message");
    read_echo(item);
    if (type == "message") return read_message(item);
    if (type == "function_call") return read_call(item);
    if (type == "function_call_output") return read_output(item);
    if (type == "reasoning") return read_reasoning(item);
    fault.set(path, fmt::format("{} is of type \"{}\", which is not supported here", path, type),
              "unsupported_parameter");
  }

  void finish() {
    if (!open_) return;
    json::Object message{{"role", "assistant"}, {"content", text_}};
    if (!reasoning_.empty()) message["reasoning_content"] = reasoning_;
    if (!calls_.empty()) {
      if (text_.empty()) message["content"] = nullptr;
      message["tool_calls"] = std::move(calls_);
    }
    out_.push_back(std::move(message));
    calls_ = {};
    text_.clear();
    reasoning_.clear();
    open_ = said_ = false;
  }

 private:
  void read_message(json::Reader& item) {
    item.require("role", "user, assistant, system or developer");
    item.require("content", "a string or a list of parts");
    const std::string role =
        item.choice("role", {"user", "assistant", "system", "developer"}).value_or("");
    std::string text = read_text(item, "content");
    if (role != "assistant") {
      finish();
      out_.push_back(json::Object{{"role", role}, {"content", text}});
      return;
    }
    if (said_ || !calls_.empty()) finish();
    open_ = said_ = true;
    text_ = std::move(text);
  }

  void read_call(json::Reader& item) {
    item.require("call_id", "a string");
    item.require("name", "a string");
    item.require("arguments", "a string of JSON");
    read_call_extras(item);
    open_ = true;
    calls_.push_back(json::Object{
        {"id", item.string("call_id", kNameMax).value_or("")},
        {"type", "function"},
        {"function", json::Object{{"name", item.string("name", kNameMax).value_or("")},
                                  {"arguments", item.string("arguments").value_or("{}")}}}});
  }

  void read_output(json::Reader& item) {
    finish();
    item.require("call_id", "a string");
    item.require("output", "a string or a list of parts");
    item.string("name", kNameMax);
    read_call_extras(item);
    json::Object message{{"role", "tool"}, {"content", read_text(item, "output")}};
    message["tool_call_id"] = item.string("call_id", kNameMax).value_or("");
    out_.push_back(std::move(message));
  }

  void read_reasoning(json::Reader& item) {
    finish();
    open_ = true;
    reasoning_ = read_text(item, "content");
    const std::string summary = read_text(item, "summary");
    if (reasoning_.empty()) reasoning_ = summary;
    // What was kept elsewhere, encrypted, no model here can read.
    item.string("encrypted_content", kTextMax);
    if (reasoning_.empty()) open_ = false;
  }

  json::Array& out_;
  bool open_ = false;  // an assistant's message is being gathered
  bool said_ = false;  // it has its text
  std::string text_;
  std::string reasoning_;
  json::Array calls_;
};

}  // namespace

ResponsesInput read_responses_input(json::Reader& in, StoredItems& stored) {
  ResponsesInput out;
  in.require("input", "a string or a list of items");
  const json::Value* input = in.find("input");
  if (input == nullptr) return out;
  if (input->is_string()) {
    const std::string text = in.string("input", kTextMax).value_or("");
    out.messages.push_back(json::Object{{"role", "user"}, {"content", text}});
    out.items.push_back(json::Object{
        {"type", "message"},
        {"role", "user"},
        {"content", json::Array{json::Object{{"type", "input_text"}, {"text", text}}}}});
    return out;
  }
  const json::Array* items = in.array("input", kItemsMax);
  if (items == nullptr) return out;
  if (items->empty()) in.refuse("input", "must hold at least one item");
  Items reader(out.messages);
  for (std::size_t i = 0; i < items->size() && !in.fault(); ++i) {
    const std::string path = json::item_path("input", i);
    const json::Object* item = (*items)[i].if_object();
    if (item == nullptr) {
      in.fault().set(path,
                     fmt::format("{} is {}; it must be an object", path, json::shown((*items)[i])));
      break;
    }
    if (is_item_reference(*item)) item = stored.find(*item, path, in.fault());
    if (item == nullptr) continue;
    reader.read(*item, path, in.fault());
    out.items.push_back(*item);
  }
  reader.finish();
  return out;
}

}  // namespace flotilla::api
