#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flotilla::sim {

// What one seed brought. `breaches` is empty when every law held.
struct BatchOutcome {
  std::string setting;  // one line: limits and which disturbances were on
  std::vector<std::string> breaches;
  int requests = 0;
  int passes = 0;
  double worst_gap = 0;   // a mixed pass / its target
  double worst_wait = 0;  // the oldest prompt's wait / its bound
  double virtual_s = 0;
};

// A runner's life in virtual time: random limits, a random machine, random arrivals of short and
// long prompts, and a random subset of slow readers, cancels, aborts, engine failures, failed
// actions and a narrow window; then the faults stop and all must finish. Laws:
//   - chunks, slots, tokens: batch/test_body.h, after every pass
//   - an answer is what the engine answers alone
//   - a pass with decoding and prefill takes at most its target and one chunk quantum
//   - the oldest prompt is done within four times the share of prefill that passes leave
//   - no prompt that came later and is no shorter is begun before another that waits
//   - everything ends
BatchOutcome run_batch_history(std::uint64_t seed);

}  // namespace flotilla::sim
