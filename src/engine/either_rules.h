#pragma once

#include <string>
#include <string_view>

namespace flotilla::engine {

// Two grammars in GBNF, each with a rule "root", as one: what either of them allows. Names of rules
// get a mark, so that they do not meet.
std::string either_rules(std::string_view one, std::string_view other);

}  // namespace flotilla::engine
