#pragma once

#include <string_view>

namespace flotilla {

// In a JSON schema that a grammar is made of, a constant string that begins so stands for the rules
// behind it (GBNF without quotes and backslashes): for what no schema word becomes rules of. No
// schema of a client may have it.
inline constexpr std::string_view kRuleMark = "flotilla:rules ";

}  // namespace flotilla
