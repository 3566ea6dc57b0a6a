#pragma once

#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "engine/grammar.h"

namespace flotilla::engine {

// Finds where the rules of a lazy grammar begin to hold, while the text is written. Costs a look at
// the newest few hundred bytes a token, however long the text is.
class TriggerWatch {
 public:
  // Patterns that are no regular expressions throw std::regex_error.
  explicit TriggerWatch(const GrammarSpec& spec);

  // More text. Where the trigger begins, counted from the text's beginning; nullopt: not yet.
  std::optional<std::size_t> add(std::string_view text);
  // What was written from `at` on, if it is recent.
  std::string_view since(std::size_t at) const;

 private:
  struct Found {
    std::size_t at = std::string::npos;
    std::size_t size = 0;
  };
  Found find_word(const std::vector<std::string>& words) const;
  Found find_trigger() const;

  const std::vector<std::string> words_;
  const std::string reasoning_start_;
  const std::vector<std::string> reasoning_ends_;
  std::vector<std::regex> patterns_;
  std::size_t keep_ = 0;    // bytes before the end that a later trigger may begin in
  bool reasoning_ = false;  // in a thinking block
  std::string recent_;      // the text from `recent_at_` on
  std::size_t recent_at_ = 0;
  std::size_t from_ = 0;  // in `recent_`: what lies before has been dealt with
};

}  // namespace flotilla::engine
