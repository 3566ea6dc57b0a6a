#include "engine/marked_rules.h"

#include <string_view>

#include "base/rule_mark.h"

namespace flotilla::engine {

std::string reveal_marked_rules(std::string rules) {
  // How a JSON string's constant is written in rules: "\"…\"".
  const std::string begin = "\"\\\"" + std::string(kRuleMark);
  constexpr std::string_view kEnd = "\\\"\"";
  for (std::size_t at = rules.find(begin); at != rules.npos; at = rules.find(begin, at)) {
    const std::size_t end = rules.find(kEnd, at + begin.size());
    if (end == rules.npos) break;
    const std::string body = rules.substr(at + begin.size(), end - at - begin.size());
    rules.replace(at, end + kEnd.size() - at, "(" + body + ")");
  }
  return rules;
}

}  // namespace flotilla::engine
