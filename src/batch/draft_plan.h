#pragma once

#include <span>

namespace flotilla::batch {

// A decoding sequence that has a guess, as the next pass's drafts see it.
struct DraftRow {
  double rate = 0;  // how often its guesses' next token is right
  int most = 0;     // tokens that it may draft
  int tokens = 0;   // result: of its draft, into the next pass
};

struct DraftRules {
  int decoding = 0;      // sequences in the pass
  double decode_ms = 0;  // what the pass takes without drafts
  double draft_ms = 0;   // what each drafted token adds
  int tokens_max = 0;    // drafted in the pass
};

// Gives each sequence's draft its length. A drafted token is worth computing where its chance to be
// right is above what its time would have given in plain passes, so it pays for all that decode
// together: the likeliest tokens go first, until one does not pay.
void divide_drafts(std::span<DraftRow> rows, const DraftRules& rules);

}  // namespace flotilla::batch
