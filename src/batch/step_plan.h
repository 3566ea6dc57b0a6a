#pragma once

#include <cstdint>
#include <span>

#include "batch/step_cost.h"

namespace flotilla::batch {

// A sequence that can run, as the next pass's division sees it.
struct StepRow {
  int slot = 0;
  int pending = 0;          // tokens not in the cache, >= 1
  bool decoding = false;    // pending is 1, the answer's newest token
  std::uint64_t order = 0;  // of arrival
  double token_ms = 0;      // what one of its prefill tokens costs; 0 = not known
  int tokens = 0;           // result: into the next pass
};

struct StepRules {
  int step_tokens_max = 0;
  int prefill_batch = 0;
  PrefillRoom room;
  bool decode_alone = false;  // this pass measures decoding
  double oldest_credit = 0;   // tokens; what the last division returned
};

// Divides a pass. Every decoding row gets its token; then prefill fills the room: a quarter of it
// to the oldest prompt, so that it ends however many short ones come, the rest to the shortest
// first. When nobody decodes the pass may take 600 ms, for the sake of who comes meanwhile; if the
// shortest prompt ends in it, its user waits for the first token, so the pass is held to the
// target. Prompts in slots between
// decoding ones get a token each although they are not chosen: a gap would make the engine compute
// the pass in two pieces, and the token has to be computed anyway. At least one token moves if
// there is a row. Returns the oldest prompt's credit, for the next pass.
double divide_step(std::span<StepRow> rows, const StepRules& rules);

// Where each prompt must be computed as a whole: as many of them as a pass holds, oldest first.
void divide_whole(std::span<StepRow> rows, int step_tokens_max);

}  // namespace flotilla::batch
