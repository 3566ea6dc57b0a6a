#include "engine/either_rules.h"

#include <cctype>

namespace flotilla::engine {
namespace {

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; }

// Copies up to and with the `end` that is not escaped.
std::size_t copy_to(char end, std::string_view rules, std::size_t at, std::string& out) {
  do {
    if (rules[at] == '\\' && at + 1 < rules.size()) out += rules[at++];
    out += rules[at++];
  } while (at < rules.size() && rules[at] != end);
  if (at < rules.size()) out += rules[at++];
  return at;
}

// Every rule's name with `mark` in front: words outside of literals, classes, tokens, repetitions
// and comments.
std::string marked(std::string_view rules, std::string_view mark) {
  std::string out;
  for (std::size_t at = 0; at < rules.size();) {
    const char c = rules[at];
    if (c == '"') {
      at = copy_to('"', rules, at, out);
    } else if (c == '[') {
      at = copy_to(']', rules, at, out);
    } else if (c == '{') {
      at = copy_to('}', rules, at, out);
    } else if (c == '<') {
      at = copy_to('>', rules, at, out);
    } else if (c == '#') {
      at = copy_to('\n', rules, at, out);
    } else if (in_name(c)) {
      out += mark;
      while (at < rules.size() && in_name(rules[at])) out += rules[at++];
    } else {
      out += c;
      ++at;
    }
  }
  return out;
}

}  // namespace

std::string either_rules(std::string_view one, std::string_view other) {
  return "root ::= a-root | b-root\n" + marked(one, "a-") + "\n" + marked(other, "b-") + "\n";
}

}  // namespace flotilla::engine
