#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace flotilla::runner {

// How long an answer may think before it must come to its point.
struct ThoughtBudget {
  int tokens = 0;
  std::string start;                // text that begins the thoughts
  std::string end;                  // text that ends them
  std::vector<engine::Token> ends;  // the same as tokens; empty: there is no limit
  bool begun = false;               // the prompt ends within the thoughts
};

// Counts the tokens of an answer's thoughts, and ends them when there are too many. It depends on
// the answer's tokens alone, so a resumed answer thinks on as the lost one would have.
class ThoughtLimit {
 public:
  explicit ThoughtLimit(ThoughtBudget budget)
      : budget_(std::move(budget)), thinking_(budget_.begun), over_(budget_.ends.empty()) {}

  // The token that must come next; none: any may.
  std::optional<engine::Token> forced() const;
  // The answer's next token, and its text.
  void add(engine::Token token, std::string_view piece);

 private:
  ThoughtBudget budget_;
  bool thinking_;
  bool over_;              // thoughts have ended, or there were none: nothing is looked at any more
  int count_ = 0;          // tokens since they began
  std::size_t ended_ = 0;  // of budget_.ends, that have come
  std::string recent_;     // text in which a mark may be under way
};

}  // namespace flotilla::runner
