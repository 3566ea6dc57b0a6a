#include "api/anthropic.h"

#include <fmt/format.h>

#include "api/anthropic_answer.h"
#include "api/anthropic_messages.h"
#include "api/error_body.h"
#include "api/fields_of_theirs.h"
#include "api/json.h"
#include "api/json_text.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kNameMax = 512;
constexpr std::size_t kToolsMax = 1024;
constexpr std::size_t kStopsMax = 16;
constexpr std::size_t kStopBytesMax = 4096;

void refuse_unsupported(json::Reader& in) {
  refuse_fields(in, {"container", "context_management", "mcp_servers", "diagnostics",
                     "inference_geo", "user_profile_id", "workspace_id", "billing_policy",
                     "compaction", "fallbacks", "fallback_credit_token", "thread"});
  read_cache_control(in);
  in.choice("service_tier", {"auto", "standard_only"});
  in.choice("speed", {"standard"});
}

void read_limits(json::Reader& in, json::Object& chat) {
  in.require("max_tokens", "an integer of at least 1");
  if (const auto limit = in.integer("max_tokens", 1, INT32_MAX)) chat["max_tokens"] = *limit;
  if (const auto value = in.number("temperature", 0, 2)) chat["temperature"] = *value;
  if (const auto value = in.number("top_p", 0, 1)) chat["top_p"] = *value;
  if (const auto value = in.integer("top_k", -1, 1'000'000)) chat["top_k"] = *value;
  const json::Array* stops = in.array("stop_sequences", kStopsMax);
  for (std::size_t i = 0; stops != nullptr && i < stops->size(); ++i) {
    const json::Value& stop = (*stops)[i];
    if (stop.is_string() && !stop.get_string().empty() && stop.get_string().size() <= kStopBytesMax)
      continue;
    const std::string path = json::item_path("stop_sequences", i);
    in.fault().set(path, fmt::format("{} is {}; each must be a string of 1 to {} bytes", path,
                                     json::shown(stop), kStopBytesMax));
  }
  if (stops != nullptr && !stops->empty()) chat["stop"] = *stops;
  if (const json::Object* metadata = in.object("metadata")) {
    json::Reader about(*metadata, in.fault(), "metadata");
    if (const auto user = about.string("user_id", kNameMax)) chat["user"] = *user;
  }
}

bool hides_thinking(json::Reader& in) {
  const json::Object* object = in.object("thinking");
  if (object == nullptr) return false;
  json::Reader thinking(*object, in.fault(), "thinking");
  return thinking.string("display") == "omitted";
}

void read_thinking(json::Reader& in, json::Object& chat) {
  chat["enable_thinking"] = false;
  const json::Object* object = in.object("thinking");
  if (object == nullptr) return;
  json::Reader thinking(*object, in.fault(), "thinking");
  thinking.require("type", "enabled, adaptive or disabled");
  const auto type = thinking.choice("type", {"enabled", "adaptive", "between_tools", "disabled"});
  chat["enable_thinking"] = type && *type != "disabled";
  thinking.choice("display", {"summarized", "omitted"});
  refuse_fields(thinking, {"block_binding"});
  if (type == "enabled") {
    thinking.require("budget_tokens", "an integer of at least 1024");
    if (const auto budget = thinking.integer("budget_tokens", 1, INT32_MAX))
      chat["thinking_budget"] = *budget;
  }
}

// Newer clients ask for a schema and an effort here.
void read_output(json::Reader& in, json::Object& chat) {
  const json::Object* format = in.object("output_format");
  std::string path = "output_format";
  if (const json::Object* config = in.object("output_config")) {
    json::Reader output(*config, in.fault(), "output_config");
    if (const json::Object* inner = output.object("format")) {
      format = inner;
      path = "output_config.format";
    }
    if (const auto effort = output.choice("effort", {"low", "medium", "high", "xhigh", "max"}))
      chat["reasoning_effort"] = *effort == "xhigh" || *effort == "max" ? "high" : *effort;
    refuse_fields(output, {"task_budget"});
  }
  if (format == nullptr) return;
  json::Reader wanted(*format, in.fault(), path);
  wanted.require("type", "json_schema");
  wanted.choice("type", {"json_schema"});
  wanted.require("schema", "an object");
  const json::Object* schema = wanted.object("schema");
  if (schema == nullptr) return;
  chat["response_format"] = json::Object{
      {"type", "json_schema"},
      {"json_schema", json::Object{{"name", "answer"}, {"strict", true}, {"schema", *schema}}}};
}

json::Value read_tool(const json::Object& object, const std::string& path, json::Fault& fault) {
  json::Reader tool(object, fault, path);
  const std::string type = tool.string("type", kNameMax).value_or("custom");
  if (type != "custom") {
    fault.set(path,
              fmt::format("{} is of type \"{}\": a tool that Anthropic's own servers run; "
                          "give tools with an input_schema",
                          path, type),
              "unsupported_parameter");
    return nullptr;
  }
  tool.require("name", "a string");
  tool.require("input_schema", "a JSON schema");
  json::Object function{{"name", tool.string("name", kNameMax).value_or("")}};
  if (const auto about = tool.string("description")) function["description"] = *about;
  if (const json::Object* schema = tool.object("input_schema")) function["parameters"] = *schema;
  if (const auto strict = tool.boolean("strict")) function["strict"] = *strict;
  tool.boolean("eager_input_streaming");  // arguments stream in any case
  refuse_fields(tool, {"defer_loading", "input_examples"});
  refuse_items_but(tool, "allowed_callers", "direct");
  read_cache_control(tool);
  return json::Object{{"type", "function"}, {"function", std::move(function)}};
}

void read_tool_choice(json::Reader& in, json::Object& chat) {
  const json::Object* object = in.object("tool_choice");
  if (object == nullptr) return;
  json::Reader choice(*object, in.fault(), "tool_choice");
  choice.require("type", "auto, any, tool or none");
  const std::string type = choice.choice("type", {"auto", "any", "tool", "none"}).value_or("");
  if (choice.boolean("disable_parallel_tool_use").value_or(false))
    chat["parallel_tool_calls"] = false;
  if (type == "any") {
    chat["tool_choice"] = "required";
  } else if (type == "tool") {
    choice.require("name", "a tool's name");
    chat["tool_choice"] = json::Object{
        {"type", "function"},
        {"function", json::Object{{"name", choice.string("name", kNameMax).value_or("")}}}};
  } else if (!type.empty()) {
    chat["tool_choice"] = type;
  }
}

void read_tools(json::Reader& in, json::Object& chat) {
  const json::Array* tools = in.array("tools", kToolsMax);
  if (tools != nullptr && !tools->empty()) {
    json::Array out;
    for (std::size_t i = 0; i < tools->size() && !in.fault(); ++i) {
      const std::string path = json::item_path("tools", i);
      if (const json::Object* tool = (*tools)[i].if_object()) {
        out.push_back(read_tool(*tool, path, in.fault()));
      } else {
        in.fault().set(
            path, fmt::format("{} is {}; it must be an object", path, json::shown((*tools)[i])));
      }
    }
    chat["tools"] = std::move(out);
  }
  read_tool_choice(in, chat);
}

// What a count and an answer read alike.
json::Object read_prompt(json::Reader& in) {
  json::Object chat;
  in.require("model", "the alias of a loaded model");
  chat["model"] = in.string("model", kNameMax).value_or("");
  bool continues = false;
  chat["messages"] = read_anthropic_messages(in, continues);
  if (continues) chat["continue_final_message"] = true;
  read_thinking(in, chat);
  read_tools(in, chat);
  read_output(in, chat);
  refuse_unsupported(in);
  return chat;
}

// Our own fields and those of OpenAI's that have no other name there.
void pass_extras(const json::Object& from, json::Object& chat) {
  for (const char* name : {"seed", "min_p", "repetition_penalty", "ignore_eos", "session_id",
                           "chat_template_kwargs", "timeout_s", "grammar", "logit_bias"}) {
    if (const json::Value* value = from.if_contains(name)) chat[name] = *value;
  }
}

class CountForm final : public AnswerForm {
 public:
  std::string event(std::string_view) override { return {}; }
  std::string answer(std::string_view count) override {
    const auto object = json::parse_object(count);
    const json::Value* tokens = object ? object->if_contains("prompt_tokens") : nullptr;
    return json::to_text(
        json::Object{{"input_tokens", tokens == nullptr ? json::Value(0) : *tokens}});
  }
  std::string error(const Error& error) const override { return messages_error_body(error); }
};

}  // namespace

Result<FormRequest> parse_messages_request(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader in(*object, fault);
  json::Object chat = read_prompt(in);
  read_limits(in, chat);
  pass_extras(*object, chat);
  if (in.boolean("stream").value_or(false)) {
    chat["stream"] = true;
    chat["stream_options"] = json::Object{{"include_usage", true}, {"early_usage", true}};
  }
  const bool hidden = hides_thinking(in);
  if (fault) return fault.unexpected();
  return FormRequest{.chat = json::to_text(chat), .answer = make_anthropic_answer(hidden)};
}

Result<FormRequest> parse_count_request(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader in(*object, fault);
  const json::Object chat = read_prompt(in);
  if (fault) return fault.unexpected();
  return FormRequest{.chat = json::to_text(chat), .answer = std::make_unique<CountForm>()};
}

std::string anthropic_error_body(const Error& error) {
  std::string out = R"({"type":"error","error":{"type":)";
  append_quoted(out, anthropic_error_type(error.code));
  out += R"(,"message":)";
  append_quoted(out, error.message);
  out += "}}";
  return out;
}

}  // namespace flotilla::api
