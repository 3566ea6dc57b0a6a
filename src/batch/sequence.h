#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "batch/ngram_draft.h"
#include "batch/scheduler.h"

namespace flotilla::batch {

constexpr int kNoSlot = -1;

// A request inside the runner. Invariants: held <= tokens.size() <= context; held > 0 only with a
// slot or saved; saved only without a slot.
struct Sequence {
  SequenceId id = 0;
  std::uint64_t order = 0;    // of submission
  std::uint64_t request = 0;  // 0: it is alone
  Instant arrival{};
  std::vector<engine::Token> tokens{};  // prompt, then answer
  std::size_t prompt_size = 0;
  int reserve = 0;  // cells that admission counts
  int held = 0;     // cells that exist, in the slot or saved
  int slot = kNoSlot;
  bool saved = false;
  bool wants_vector = false;
  bool parked = false;
  Instant parked_since{};             // seen by the first plan after park()
  std::uint64_t evicted_by = 0;       // plan that took its slot
  std::optional<NgramDraft> draft{};  // once it decodes, if drafts are wanted
  // The newest token and its draft, if the last plan gave it one; these cells count as held once
  // their tokens are answered.
  std::vector<engine::Token> run{};
  std::size_t checked = 0;  // tokens of `run` that are answered; 0: no draft is being checked

  int size() const { return static_cast<int>(tokens.size()); }
  int pending() const { return size() - held; }
  // Its answer has begun and only the newest token is missing in the cache. (A rolled back answer
  // is prefilled like a prompt.)
  bool decoding() const { return tokens.size() > prompt_size && pending() <= 1; }
};

}  // namespace flotilla::batch
