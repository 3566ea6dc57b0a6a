#pragma once

#include <string>

namespace flotilla::engine {

// GBNF that llama-common made of a schema, with the rules that stand in it as marked constants
// (base/rule_mark.h) put where the constants were.
std::string reveal_marked_rules(std::string rules);

}  // namespace flotilla::engine
