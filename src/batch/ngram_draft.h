#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace flotilla::batch {

// Guesses how one sequence goes on: as it went on after the last place where its newest tokens
// stood before (prompt lookup). Knows this sequence alone, so that no user's timing tells of
// another's text. A guess counts as right or wrong whether it was drafted or not: rate() costs
// nothing to keep. A token costs O(1); the table has a fixed size, and an old place gives way to a
// new one.
class NgramDraft {
 public:
  // `prompt`: not judged, since it was not generated. `tokens_expected`: sizes the table.
  NgramDraft(std::span<const engine::Token> prompt, std::size_t tokens_expected);

  // `tokens`: all of the sequence's, of which the last is new.
  void add(std::span<const engine::Token> tokens);
  // The tokens that may follow, at most `most`; none where nothing like it stood before. A guess
  // that reaches the end goes on with itself, as a period does.
  std::vector<engine::Token> guess(std::span<const engine::Token> tokens, int most) const;
  bool has_guess() const { return next_ != 0; }
  // The share of the latest guesses' first tokens that were right, newer ones weigh more.
  double rate() const { return rate_; }

 private:
  void look_up(std::span<const engine::Token> tokens);

  std::vector<std::uint32_t> places_;  // by the hash of kLength tokens: what stood after them
  std::size_t next_ = 0;               // the place of the next token's guess; 0: none
  double rate_ = 0.5;
};

}  // namespace flotilla::batch
