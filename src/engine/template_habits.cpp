#include "engine/template_habits.h"

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <utility>

namespace flotilla::engine {

// Asked with a tool that it has to call.
bool knows_tools(const common_chat_templates* templates) {
  try {
    common_chat_templates_inputs inputs;
    inputs.messages.emplace_back().role = "user";
    inputs.messages.back().content = "x";
    inputs.tools = {
        {"probe_tool", "x", R"({"type":"object","properties":{"a":{"type":"string"}}})"}};
    inputs.tool_choice = COMMON_CHAT_TOOL_CHOICE_REQUIRED;
    const common_chat_params form = common_chat_templates_apply(templates, inputs);
    return !form.grammar.empty() && form.prompt.find("probe_tool") != form.prompt.npos;
  } catch (const std::exception&) {
    return false;
  }
}

// Some refuse all but the first, and some drop them.
bool shows_late_systems(const common_chat_templates* templates) {
  try {
    common_chat_templates_inputs inputs;
    for (const auto& [role, content] : {std::pair("system", "rule-1"),
                                        {"system", "rule-2"},
                                        {"user", "x"},
                                        {"assistant", "y"},
                                        {"system", "rule-3"},
                                        {"user", "z"}}) {
      inputs.messages.emplace_back().role = role;
      inputs.messages.back().content = content;
    }
    const std::string prompt = common_chat_templates_apply(templates, inputs).prompt;
    return std::ranges::all_of(std::array{"rule-1", "rule-2", "rule-3"},
                               [&prompt](auto rule) { return prompt.find(rule) != prompt.npos; });
  } catch (const std::exception&) {
    return false;
  }
}

// Some of LFM2's do.
bool leaves_calls_out(const common_chat_templates* templates) {
  return common_chat_templates_source(templates).find("List of tools: ") != std::string::npos &&
         !common_chat_templates_get_caps(templates)["supports_tool_calls"];
}

}  // namespace flotilla::engine
