#include "engine/plain_tools.h"

#include <chat-peg-parser.h>
#include <json-schema-to-grammar.h>
#include <string>

#include <fmt/format.h>

namespace flotilla::engine {
namespace {

constexpr const char* kCall = "<tool_call>";
constexpr const char* kCallEnd = "</tool_call>";

// As JSON, and where it is none as a JSON string.
std::string json_of(const std::string& text) {
  const common_json parsed = common_json::parse_no_throw(text);
  return parsed.is_discarded() ? common_json(text).dump() : parsed.dump();
}

std::string describe(const std::vector<common_chat_tool>& tools) {
  std::string text = "You can call functions. Each line is one of them, as JSON:\n<tools>\n";
  for (const common_chat_tool& tool : tools) {
    text += fmt::format(
        R"({{"type":"function","function":{{"name":{},"description":{},"parameters":{}}}}})",
        common_json(tool.name).dump(), common_json(tool.description).dump(),
        json_of(tool.parameters));
    text += '\n';
  }
  text +=
      "</tools>\nTo call one, answer with its name and its arguments as JSON between these tags:\n"
      "<tool_call>\n{\"name\": \"...\", \"arguments\": {...}}\n</tool_call>";
  return text;
}

// The template's own begin of the answer opens a thinking block that it does not close.
bool begins_to_think(const std::string& prompt, const std::string& start, const std::string& end) {
  const std::size_t opened = prompt.rfind(start);
  const std::size_t closed = prompt.rfind(end);
  return opened != prompt.npos && (closed == prompt.npos || closed < opened);
}

std::string write_calls(const common_chat_msg& message) {
  std::string text = message.content;
  for (const common_chat_tool_call& call : message.tool_calls) {
    if (!text.empty()) text += '\n';
    text += fmt::format("{}\n{{\"name\": {}, \"arguments\": {}}}\n{}", kCall,
                        common_json(call.name).dump(), json_of(call.arguments), kCallEnd);
  }
  return text;
}

}  // namespace

std::vector<common_chat_msg> write_out_tools(const std::vector<common_chat_msg>& messages,
                                             const std::vector<common_chat_tool>& tools) {
  std::vector<common_chat_msg> out;
  const bool begins_with_system = !messages.empty() && messages.front().role == "system";
  common_chat_msg system;
  system.role = "system";
  if (begins_with_system) system.content = messages.front().content + "\n\n";
  system.content += describe(tools);
  out.push_back(std::move(system));
  bool after_result = false;
  for (std::size_t i = begins_with_system ? 1 : 0; i < messages.size(); ++i) {
    const common_chat_msg& message = messages[i];
    const bool result = message.role == "tool";
    if (result) {
      const std::string block =
          fmt::format("<tool_response>\n{}\n</tool_response>", message.content);
      // One turn for all results of a turn: many templates want user and assistant in turns.
      if (after_result) {
        out.back().content += '\n' + block;
      } else {
        out.emplace_back().role = "user";
        out.back().content = block;
      }
    } else {
      common_chat_msg& to = out.emplace_back(message);
      to.content = write_calls(message);
      to.tool_calls.clear();
    }
    after_result = result;
  }
  return out;
}

void write_out_calls(common_chat_msg& message) {
  if (message.tool_calls.empty()) return;
  std::string calls;
  for (const common_chat_tool_call& call : message.tool_calls) {
    std::string arguments;
    const common_json values = common_json::parse_no_throw(call.arguments);
    if (values.is_object()) {
      for (const auto& [name, value] : values.items()) {
        arguments += fmt::format("{}{}={}", arguments.empty() ? "" : ", ", name, value.dump());
      }
    }
    calls += fmt::format("{}{}({})", calls.empty() ? "" : ", ", call.name, arguments);
  }
  message.content += fmt::format("<|tool_call_start|>[{}]<|tool_call_end|>", calls);
  message.tool_calls.clear();
}

void parse_plain_tools(common_chat_params& params, const std::vector<common_chat_tool>& tools,
                       bool required, bool parallel) {
  common_json list = common_json::array();
  for (const common_chat_tool& tool : tools) {
    list.push_back({{"type", "function"},
                    {"function",
                     {{"name", tool.name},
                      {"description", tool.description},
                      {"parameters", common_json::parse(tool.parameters)}}}});
  }
  const std::string& start = params.thinking_start_tag;
  const std::string end =
      params.thinking_end_tags.empty() ? std::string() : params.thinking_end_tags.front();
  const bool thinks = !start.empty() && !end.empty();
  params.generation_prompt =
      thinks && begins_to_think(params.generation_prompt, start, end) ? start : std::string();
  const common_peg_arena parser = build_chat_peg_parser([&](common_chat_peg_builder& p) {
    const auto call = p.standard_json_tools(kCall, kCallEnd, list, false, true) + p.space();
    const auto calls = parallel ? p.trigger_rule("tool-calls", p.one_or_more(call)) : call;
    const auto spoken = p.optional(p.content(p.until(kCall)));
    const auto answer = required ? calls + p.end() : spoken + p.optional(calls) + p.end();
    if (!thinks) return answer;
    const auto thoughts = p.literal(start) + p.reasoning(p.until(end)) + p.literal(end);
    return p.optional(thoughts + p.space()) + answer;
  });
  params.format = COMMON_CHAT_FORMAT_PEG_NATIVE;
  params.parser = parser.save();
  params.grammar_lazy = !required;
  params.grammar = build_grammar(
      [&](const common_grammar_builder& builder) { parser.build_grammar(builder, !required); });
  params.grammar_triggers = {};
  if (!required) params.grammar_triggers.push_back({COMMON_GRAMMAR_TRIGGER_TYPE_WORD, kCall});
}

}  // namespace flotilla::engine
