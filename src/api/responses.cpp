#include "api/responses.h"

#include <fmt/format.h>

#include "api/fields_of_theirs.h"
#include "api/json.h"
#include "api/json_text.h"
#include "api/responses_answer.h"
#include "api/responses_input.h"
#include "api/stored_items.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kNameMax = 512;
constexpr std::size_t kToolsMax = 1024;
constexpr std::size_t kIncludesMax = 64;

void refuse_unsupported(json::Reader& in) {
  refuse_fields(in, {"conversation", "prompt", "max_tool_calls", "context_management", "moderation",
                     "background_options", "access_programs", "image"});
  if (in.boolean("background").value_or(false)) refuse_field(in, "background", "is not supported");
  if (in.choice("truncation", {"auto", "disabled"}) == "auto") {
    refuse_field(in, "truncation",
                 "\"auto\" is not supported: nothing of a conversation is dropped unasked");
  }
  in.choice("service_tier", {"auto", "default"});
}

// The request's own value, or null, or OpenAI's default, as the response shows it.
void echo(const json::Object& from, json::Object& shown, const char* name,
          json::Value otherwise = nullptr) {
  const json::Value* value = from.if_contains(name);
  const bool absent = value == nullptr || value->is_null();
  if (!absent) otherwise = *value;
  shown[name] = std::move(otherwise);
}

json::Value read_tool(const json::Object& object, const std::string& path, json::Fault& fault) {
  json::Reader tool(object, fault, path);
  tool.require("type", "\"function\"");
  const std::string type = tool.string("type", kNameMax).value_or("function");
  if (type != "function") {
    fault.set(path, fmt::format("{} is of type \"{}\"; only functions are supported", path, type),
              "unsupported_parameter");
    return nullptr;
  }
  tool.require("name", "a string");
  json::Object function{{"name", tool.string("name", kNameMax).value_or("")}};
  if (const auto about = tool.string("description")) function["description"] = *about;
  if (const json::Object* schema = tool.object("parameters")) function["parameters"] = *schema;
  if (const auto strict = tool.boolean("strict")) function["strict"] = *strict;
  refuse_fields(tool, {"async", "defer_loading", "output_schema"});
  refuse_items_but(tool, "allowed_callers", "direct");
  return json::Object{{"type", "function"}, {"function", std::move(function)}};
}

json::Object function_named(const std::string& name) {
  return json::Object{{"type", "function"}, {"function", json::Object{{"name", name}}}};
}

json::Object read_allowed_tools(json::Reader& choice) {
  choice.require("mode", "\"auto\" or \"required\"");
  const std::string mode = choice.choice("mode", {"auto", "required"}).value_or("");
  choice.require("tools", "a list of functions");
  const json::Array* tools = choice.array("tools", kToolsMax);
  json::Array functions;
  for (std::size_t i = 0; tools != nullptr && i < tools->size() && !choice.fault(); ++i) {
    const std::string path = json::item_path(choice.path_of("tools"), i);
    const json::Object* object = (*tools)[i].if_object();
    if (object == nullptr) {
      choice.fault().set(
          path, fmt::format("{} is {}; it must be an object", path, json::shown((*tools)[i])));
      break;
    }
    json::Reader tool(*object, choice.fault(), path);
    tool.require("type", "\"function\"");
    tool.choice("type", {"function"});
    tool.require("name", "a function's name");
    functions.push_back(function_named(tool.string("name", kNameMax).value_or("")));
  }
  return json::Object{
      {"type", "allowed_tools"},
      {"allowed_tools", json::Object{{"mode", mode}, {"tools", std::move(functions)}}}};
}

void read_tools(json::Reader& in, json::Object& chat) {
  const json::Array* tools = in.array("tools", kToolsMax);
  json::Array out;
  for (std::size_t i = 0; tools != nullptr && i < tools->size() && !in.fault(); ++i) {
    const std::string path = json::item_path("tools", i);
    if (const json::Object* tool = (*tools)[i].if_object()) {
      out.push_back(read_tool(*tool, path, in.fault()));
    } else {
      in.fault().set(path,
                     fmt::format("{} is {}; it must be an object", path, json::shown((*tools)[i])));
    }
  }
  if (!out.empty()) chat["tools"] = std::move(out);
  if (const auto parallel = in.boolean("parallel_tool_calls"))
    chat["parallel_tool_calls"] = *parallel;
  const json::Value* choice = in.find("tool_choice");
  if (choice == nullptr) return;
  if (choice->is_string()) {
    if (const auto word = in.choice("tool_choice", {"none", "auto", "required"}))
      chat["tool_choice"] = *word;
    return;
  }
  const json::Object* object = in.object("tool_choice");
  if (object == nullptr) return;
  json::Reader named(*object, in.fault(), "tool_choice");
  named.require("type", "\"function\" or \"allowed_tools\"");
  if (named.choice("type", {"function", "allowed_tools"}) == "allowed_tools") {
    chat["tool_choice"] = read_allowed_tools(named);
    return;
  }
  named.require("name", "a function's name");
  chat["tool_choice"] = function_named(named.string("name", kNameMax).value_or(""));
}

void read_format(json::Reader& in, json::Object& chat) {
  const json::Object* text = in.object("text");
  if (text == nullptr) return;
  json::Reader about(*text, in.fault(), "text");
  about.choice("verbosity", {"low", "medium", "high"});
  const json::Object* object = about.object("format");
  if (object == nullptr) return;
  json::Reader format(*object, in.fault(), "text.format");
  format.require("type", "text, json_object or json_schema");
  const std::string type =
      format.choice("type", {"text", "json_object", "json_schema"}).value_or("text");
  if (type == "text") return;
  json::Object wanted{{"type", type}};
  if (type == "json_schema") {
    format.require("schema", "an object");
    json::Object schema{{"name", format.string("name", kNameMax).value_or("answer")}};
    if (const json::Object* given = format.object("schema")) schema["schema"] = *given;
    if (const auto about = format.string("description")) schema["description"] = *about;
    if (const auto strict = format.boolean("strict")) schema["strict"] = *strict;
    wanted["json_schema"] = std::move(schema);
  }
  chat["response_format"] = std::move(wanted);
}

void read_includes(json::Reader& in, json::Object& chat) {
  const json::Array* includes = in.array("include", kIncludesMax);
  for (std::size_t i = 0; includes != nullptr && i < includes->size(); ++i) {
    const json::Value& item = (*includes)[i];
    // Reasoning comes in the open here, so there is nothing to encrypt.
    if (item == "reasoning.encrypted_content") continue;
    if (item == "message.output_text.logprobs") {
      chat["logprobs"] = true;
      continue;
    }
    const std::string path = json::item_path("include", i);
    in.fault().set(path, fmt::format("{} is {}, which is not supported", path, json::shown(item)),
                   "unsupported_parameter");
  }
  if (const auto top = in.integer("top_logprobs", 0, 20); top && *top > 0) {
    chat["logprobs"] = true;
    chat["top_logprobs"] = *top;
  }
}

void read_sampling(json::Reader& in, const json::Object& body, json::Object& chat) {
  if (const auto limit = in.integer("max_output_tokens", 1, INT32_MAX))
    chat["max_completion_tokens"] = *limit;
  if (const json::Object* reasoning = in.object("reasoning")) {
    json::Reader about(*reasoning, in.fault(), "reasoning");
    if (const auto effort =
            about.choice("effort", {"none", "minimal", "low", "medium", "high", "xhigh", "max"}))
      chat["reasoning_effort"] = *effort == "xhigh" || *effort == "max" ? "high" : *effort;
    // Reasoning is shown as it is, which is more than any summary.
    about.choice("summary", {"auto", "concise", "detailed"});
    about.choice("generate_summary", {"auto", "concise", "detailed"});
    refuse_but(about, "context", "auto");
    refuse_but(about, "mode", "standard");
  }
  // Named alike in both; chat's own parser looks at them.
  for (const char* name : {"temperature",
                           "top_p",
                           "user",
                           "metadata",
                           "prompt_cache_key",
                           "prompt_cache_retention",
                           "prompt_cache_options",
                           "safety_identifier",
                           "seed",
                           "top_k",
                           "min_p",
                           "stop",
                           "presence_penalty",
                           "frequency_penalty",
                           "repetition_penalty",
                           "ignore_eos",
                           "session_id",
                           "enable_thinking",
                           "chat_template_kwargs",
                           "timeout_s",
                           "grammar",
                           "logit_bias"}) {
    if (const json::Value* value = body.if_contains(name)) chat[name] = *value;
  }
}

json::Object shown_fields(const json::Object& body) {
  json::Object shown;
  for (const char* name : {"instructions", "max_output_tokens", "previous_response_id", "user",
                           "prompt_cache_key", "safety_identifier"})
    echo(body, shown, name);
  echo(body, shown, "metadata", json::Object{});
  echo(body, shown, "parallel_tool_calls", true);
  echo(body, shown, "reasoning", json::Object{{"effort", nullptr}, {"summary", nullptr}});
  echo(body, shown, "store", true);
  echo(body, shown, "temperature", 1.0);
  echo(body, shown, "text", json::Object{{"format", json::Object{{"type", "text"}}}});
  echo(body, shown, "tool_choice", "auto");
  echo(body, shown, "tools", json::Array{});
  echo(body, shown, "top_p", 1.0);
  echo(body, shown, "truncation", "disabled");
  shown["background"] = false;
  shown["service_tier"] = "default";
  return shown;
}

// `{"messages":[INSTRUCTIONS,` + earlier messages + `OWN…],` + the rest.
void write_chat(FormRequest& out, const std::string& instructions, const json::Array& messages,
                const json::Object& rest) {
  out.chat = R"({"messages":[)";
  if (!instructions.empty()) {
    out.chat += json::to_text(json::Object{{"role", "system"}, {"content", instructions}}) + ',';
  }
  out.earlier_at = out.chat.size();
  out.chat += json::to_text(messages).substr(1) + ',' + json::to_text(rest).substr(1);
}

}  // namespace

Result<FormRequest> parse_responses_request(std::string_view body,
                                            const std::vector<KeptAnswer>* stored) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader in(*object, fault);
  json::Object chat;
  in.require("model", "the alias of a loaded model");
  chat["model"] = in.string("model", kNameMax).value_or("");
  StoredItems named(stored);
  ResponsesInput input = read_responses_input(in, named);
  const std::string instructions = in.string("instructions", 32 << 20).value_or("");
  read_tools(in, chat);
  read_format(in, chat);
  read_includes(in, chat);
  read_sampling(in, *object, chat);
  refuse_unsupported(in);
  FormRequest out;
  out.previous = in.string("previous_response_id", kNameMax).value_or("");
  const bool store = in.boolean("store").value_or(true);
  if (const json::Object* options = in.object("stream_options")) {
    json::Reader stream(*options, fault, "stream_options");
    read_obfuscation(stream);
  }
  if (in.boolean("stream").value_or(false)) {
    chat["stream"] = true;
    chat["stream_options"] = json::Object{{"include_usage", true}};
  }
  if (fault) return fault.unexpected();
  out.needs = named.needs();
  if (!out.needs.empty()) return out;
  write_chat(out, instructions, input.messages, chat);
  out.answer = make_responses_answer({.shown = json::to_text(shown_fields(*object)),
                                      .messages = json::to_text(input.messages),
                                      .items = json::to_text(input.items),
                                      .store = store});
  return out;
}

std::string deleted_response_json(std::string_view id) {
  return fmt::format(R"({{"id":{},"object":"response","deleted":true}})", json_string(id));
}

}  // namespace flotilla::api
