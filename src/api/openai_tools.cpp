#include "api/openai_tools.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "api/json_schema.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kToolsMax = 128;
constexpr std::size_t kNameBytesMax = 128;  // Anthropic's; OpenAI's is half of it
constexpr std::size_t kDescriptionBytesMax = 64 << 10;
constexpr std::size_t kGrammarBytesMax = 64 << 10;
constexpr int kGrammarDepthMax = 64;
constexpr int kGrammarRepetitionMax = 1000;

// What a tool without parameters takes.
constexpr std::string_view kNoParameters = R"({"type":"object","properties":{}})";

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::ranges::all_of(
             name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
}

void read_parameters(json::Reader& function, ChatTool& tool) {
  const std::string path = function.path_of("parameters");
  const bool strict = function.boolean("strict").value_or(false);
  const json::Object* parameters = function.object("parameters");
  if (parameters == nullptr || parameters->empty()) {
    tool.parameters = tool.guide = kNoParameters;
    return;
  }
  if (const json::Value* type = parameters->if_contains("type");
      type != nullptr && *type != "object") {
    return function.fault().set(
        path + ".type",
        fmt::format("{}.type is {}; arguments are an object", path, json::shown(*type)),
        "invalid_schema");
  }
  tool.parameters = json::to_text(*parameters);
  const auto use = strict ? SchemaUse::Answer : SchemaUse::Tool;
  tool.guide = holdable_schema(*parameters, path, use, function.fault());
}

void read_tool(const json::Value& value, const std::string& path, json::Fault& fault,
               ChatRequest& out) {
  const json::Object* object = value.if_object();
  if (object == nullptr) {
    return fault.set(path, fmt::format("{} is {}; it must be an object", path, json::shown(value)));
  }
  json::Reader in(*object, fault, path);
  in.require("type", "\"function\"");
  in.choice("type", {"function"});
  in.require("function", "an object with the function's name");
  const json::Object* inner = in.object("function");
  if (inner == nullptr) return;
  json::Reader function(*inner, fault, path + ".function");
  ChatTool tool;
  function.require("name", "a string");
  tool.name = function.string("name").value_or("");
  if (!fault && !is_name(tool.name)) {
    return function.refuse(
        "name", fmt::format("must be 1 to {} letters, digits, '_' or '-'", kNameBytesMax));
  }
  const bool known = std::ranges::find(out.tools, tool.name, &ChatTool::name) != out.tools.end();
  if (known) return function.refuse("name", "must not be another tool's name too");
  tool.description = function.string("description", kDescriptionBytesMax).value_or("");
  read_parameters(function, tool);
  out.tools.push_back(std::move(tool));
}

// The one that it has to call is the only one that it need know.
void read_named_choice(json::Reader& choice, ChatRequest& out) {
  choice.require("function", "an object with the function's name");
  const json::Object* inner = choice.object("function");
  if (inner == nullptr) return;
  json::Reader function(*inner, choice.fault(), choice.path_of("function"));
  function.require("name", "a string");
  const std::string name = function.string("name").value_or("");
  if (choice.fault()) return;
  const auto named = std::ranges::find(out.tools, name, &ChatTool::name);
  if (named == out.tools.end()) return function.refuse("name", "must be a tool's name");
  ChatTool tool = std::move(*named);
  out.tools.clear();
  out.tools.push_back(std::move(tool));
  out.tool_choice = ToolChoice::Required;
}

// The tool that one of the allowed ones names; empty: the fault is set.
std::string read_allowed_name(const json::Value& value, const std::string& path, json::Fault& fault,
                              const ChatRequest& out) {
  const json::Object* object = value.if_object();
  if (object == nullptr) {
    fault.set(path, fmt::format("{} is {}; it must be an object", path, json::shown(value)));
    return {};
  }
  json::Reader in(*object, fault, path);
  in.require("type", "\"function\"");
  in.choice("type", {"function"});
  in.require("function", "an object with the function's name");
  const json::Object* inner = in.object("function");
  if (inner == nullptr) return {};
  json::Reader function(*inner, fault, in.path_of("function"));
  function.require("name", "a string");
  std::string name = function.string("name").value_or("");
  if (!fault && std::ranges::find(out.tools, name, &ChatTool::name) == out.tools.end()) {
    fault.set(path, fmt::format("{} names {}; it must be one of the tools", path,
                                json::shown(json::Value(name))));
  }
  return name;
}

// As of a named one: those that it may call are the only ones that it need know.
void read_allowed_tools(json::Reader& choice, ChatRequest& out) {
  choice.require("allowed_tools", "an object with a mode and tools");
  const json::Object* inner = choice.object("allowed_tools");
  if (inner == nullptr) return;
  json::Reader allowed(*inner, choice.fault(), choice.path_of("allowed_tools"));
  allowed.require("mode", "\"auto\" or \"required\"");
  const auto mode = allowed.choice("mode", {"auto", "required"});
  allowed.require("tools", "a list of tools");
  const json::Array* list = allowed.array("tools", kToolsMax);
  if (list == nullptr) return;
  if (list->empty()) return allowed.refuse("tools", "must name at least one tool");
  std::set<std::string> names;
  for (std::size_t i = 0; i < list->size() && !choice.fault(); ++i) {
    const std::string path = json::item_path(allowed.path_of("tools"), i);
    names.insert(read_allowed_name((*list)[i], path, choice.fault(), out));
  }
  if (choice.fault()) return;
  std::erase_if(out.tools, [&names](const ChatTool& tool) { return !names.contains(tool.name); });
  if (mode == "required") out.tool_choice = ToolChoice::Required;
}

void read_chosen_tools(const json::Value& choice, json::Reader& in, ChatRequest& out) {
  const json::Object* object = choice.if_object();
  if (object == nullptr) {
    return in.refuse("tool_choice", "must be \"none\", \"auto\", \"required\" or name functions");
  }
  json::Reader reader(*object, in.fault(), "tool_choice");
  reader.require("type", "\"function\" or \"allowed_tools\"");
  const auto type = reader.choice("type", {"function", "allowed_tools"});
  if (type == "function") read_named_choice(reader, out);
  if (type == "allowed_tools") read_allowed_tools(reader, out);
}

void read_tool_choice(json::Reader& in, ChatRequest& out) {
  const json::Value* choice = in.find("tool_choice");
  if (choice == nullptr || in.fault()) return;
  if (*choice == "none") {
    out.tool_choice = ToolChoice::None;
  } else if (*choice == "auto") {
    out.tool_choice = ToolChoice::Auto;
  } else if (out.tools.empty()) {
    in.refuse("tool_choice", "must be \"none\" or \"auto\" where there are no tools");
  } else if (*choice == "required") {
    out.tool_choice = ToolChoice::Required;
  } else {
    read_chosen_tools(*choice, in, out);
  }
}

void read_response_format(json::Reader& in, ChatRequest& out) {
  const json::Object* object = in.object("response_format");
  if (object == nullptr) return;
  json::Reader format(*object, in.fault(), "response_format");
  format.require("type", "\"text\", \"json_object\" or \"json_schema\"");
  const auto type = format.choice("type", {"text", "json_object", "json_schema"});
  if (!type || *type == "text") return;
  if (*type == "json_object") {
    out.answer_schema = R"({"type":"object"})";
    return;
  }
  format.require("json_schema", "an object with a schema");
  const json::Object* inner = format.object("json_schema");
  if (inner == nullptr) return;
  json::Reader named(*inner, in.fault(), "response_format.json_schema");
  named.string("name", kNameBytesMax);
  named.string("description", kDescriptionBytesMax);
  named.boolean("strict");
  named.require("schema", "a JSON schema");
  const json::Value* schema = named.find("schema");
  if (schema == nullptr || in.fault()) return;
  out.answer_schema =
      holdable_schema(*schema, named.path_of("schema"), SchemaUse::Answer, in.fault());
}

// Behind the literal, class or comment that begins at `at`.
std::size_t skip_text(std::string_view rules, std::size_t at) {
  const char end = rules[at] == '"' ? '"' : rules[at] == '[' ? ']' : '\n';
  for (++at; at < rules.size() && rules[at] != end; ++at) {
    if (rules[at] == '\\' && end != '\n') ++at;
  }
  return at + 1;
}

// The library that compiles rules recurses over groups and writes repetitions out.
std::string wrong_with_rules(std::string_view rules) {
  int depth = 0;
  for (std::size_t at = 0; at < rules.size();) {
    const char c = rules[at];
    if (c == '"' || c == '[' || c == '#') {
      at = skip_text(rules, at);
      continue;
    }
    if (c == '(' && ++depth > kGrammarDepthMax) {
      return fmt::format("nests groups deeper than {}", kGrammarDepthMax);
    }
    if (c == ')') --depth;
    if (c == '{') {
      const std::size_t end = std::min(rules.find('}', at), rules.size());
      for (std::size_t i = at + 1; i < end; ++i) {
        int times = 0;
        const auto [stopped, error] = std::from_chars(rules.data() + i, rules.data() + end, times);
        if (error == std::errc::invalid_argument) continue;
        if (error != std::errc{} || times > kGrammarRepetitionMax) {
          return fmt::format("repeats more than {} times", kGrammarRepetitionMax);
        }
        i = static_cast<std::size_t>(stopped - rules.data());
      }
    }
    ++at;
  }
  return {};
}

void read_grammar(json::Reader& in, ChatRequest& out) {
  out.grammar = in.string("grammar", kGrammarBytesMax).value_or("");
  if (const std::string wrong = wrong_with_rules(out.grammar); !wrong.empty()) {
    in.fault().set("grammar", "grammar " + wrong);
  }
}

}  // namespace

void read_tools(json::Reader& in, ChatRequest& out) {
  out.parallel_tool_calls = in.boolean("parallel_tool_calls");
  if (const json::Array* tools = in.array("tools", kToolsMax)) {
    for (std::size_t i = 0; i < tools->size() && !in.fault(); ++i) {
      read_tool((*tools)[i], json::item_path("tools", i), in.fault(), out);
    }
  }
  read_tool_choice(in, out);
}

void read_answer_form(json::Reader& in, ChatRequest& out) {
  read_response_format(in, out);
  read_grammar(in, out);
  if (out.grammar.empty()) return;
  if (!out.answer_schema.empty()) {
    in.fault().set("grammar", "grammar and response_format rule each other out; leave one out");
  }
  if (!out.tools.empty() && out.tool_choice != ToolChoice::None) {
    in.fault().set("grammar",
                   "grammar and tools rule each other out; leave one out, or set "
                   "tool_choice to \"none\"");
  }
}

}  // namespace flotilla::api
