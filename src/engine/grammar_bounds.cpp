#include "engine/grammar_bounds.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include <llama-grammar.h>

namespace flotilla::engine {
namespace {

constexpr std::size_t kCountMax = 1'000'000'000;
constexpr std::size_t kOfRepetition = 3;  // the rule that each repetition is written as

std::size_t capped(std::size_t a, std::size_t b) {
  return b != 0 && a > kCountMax / b ? kCountMax : a * b;
}

// Behind the literal, class or comment that begins at `at`.
std::size_t end_of_text(std::string_view rules, std::size_t at) {
  const char end = rules[at] == '"' ? '"' : rules[at] == '[' ? ']' : '\n';
  for (++at; at < rules.size() && rules[at] != end; ++at) {
    if (rules[at] == '\\' && end != '\n') ++at;
  }
  return std::min(at + 1, rules.size());
}

// The largest number of "{2,10}" that begins at `at`; none: 1.
std::size_t times_of(std::string_view rules, std::size_t at, std::size_t end) {
  std::size_t most = 1;
  while (at < end) {
    std::size_t number = 0;
    const auto [stop, error] = std::from_chars(rules.data() + at, rules.data() + end, number);
    if (error == std::errc::invalid_argument) {
      ++at;
      continue;
    }
    most = std::max(most, error == std::errc() ? number : kCountMax);
    at = static_cast<std::size_t>(stop - rules.data());
  }
  return most;
}

// Walks rules as the library has parsed them: repetitions are rules by now.
class Skips {
 public:
  explicit Skips(const llama_grammar_rules& rules)
      : rules_(rules), empty_(rules.size(), false), known_(rules.size()) {
    for (bool grown = true; grown;) {
      grown = false;
      for (std::size_t rule = 0; rule < rules_.size(); ++rule) {
        if (empty_[rule] || !has_empty_way(rules_[rule])) continue;
        empty_[rule] = grown = true;
      }
    }
  }

  int longest() {
    int most = 0;
    for (const llama_grammar_rule& rule : rules_) {
      for (std::size_t at = 0; at < rule.size(); ++at) most = std::max(most, from(rule, at));
    }
    return most;
  }

 private:
  static bool ends(const llama_grammar_element& element) {
    return element.type == LLAMA_GRETYPE_END || element.type == LLAMA_GRETYPE_ALT;
  }
  bool may_be_empty(const llama_grammar_element& element) const {
    return element.type == LLAMA_GRETYPE_RULE_REF && empty_[element.value];
  }
  bool has_empty_way(const llama_grammar_rule& rule) const {
    bool all = true;
    for (const llama_grammar_element& element : rule) {
      if (!ends(element)) {
        all = all && may_be_empty(element);
      } else if (all) {
        return true;
      } else {
        all = true;
      }
    }
    return false;
  }

  // In a row from here on, into the rules that begin here.
  int from(const llama_grammar_rule& rule, std::size_t at) {
    int most = 0;
    for (int skipped = 0; at < rule.size() && !ends(rule[at]); ++at) {
      if (rule[at].type != LLAMA_GRETYPE_RULE_REF) break;
      most = std::max(most, skipped + into(rule[at].value));
      if (!empty_[rule[at].value]) break;
      most = std::max(most, ++skipped);
      if (skipped > kSkipsMax) break;
    }
    return std::min(most, kSkipsMax + 1);
  }

  int into(std::size_t rule) {
    std::optional<int>& known = known_[rule];
    if (known) return *known;
    known = 0;  // of a rule within itself; the library refuses one that begins with itself
    int most = 0;
    bool begins = true;
    for (std::size_t at = 0; at < rules_[rule].size(); ++at) {
      if (begins) most = std::max(most, from(rules_[rule], at));
      begins = ends(rules_[rule][at]);
    }
    known_[rule] = most;
    return most;
  }

  const llama_grammar_rules& rules_;
  std::vector<bool> empty_;  // may match nothing
  std::vector<std::optional<int>> known_;
};

}  // namespace

std::size_t written_out(std::string_view rules) {
  std::size_t total = 0;
  std::size_t item = 0;  // elements of what a repetition would repeat
  for (std::size_t at = 0; at < rules.size() && total < kCountMax;) {
    const char c = rules[at];
    if (c == '"' || c == '[' || c == '#') {
      const std::size_t end = end_of_text(rules, at);
      if (c != '#') total += item = end - at;
      at = end;
      continue;
    }
    if (c == '{') {
      const std::size_t end = std::min(rules.find('}', at), rules.size());
      item = capped(item + kOfRepetition, times_of(rules, at + 1, end));
      total += item;
      at = end;
    } else if (c == '*' || c == '+' || c == '?') {
      total += item += kOfRepetition;
    } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
      item = 1;
      ++total;
    }
    ++at;
  }
  return total;
}

int longest_skip(const std::string& rules, const llama_vocab* vocab) {
  llama_grammar_parser parser(vocab);
  if (!parser.parse(rules.c_str())) return 0;
  return Skips(parser.rules).longest();
}

}  // namespace flotilla::engine
