#pragma once

#include <deque>

#include "api/runner_protocol.h"
#include "base/clock.h"
#include "runner/scheduler_thread.h"

namespace flotilla::runner {

// Makes what /runner/events says of the steps' reports: the longest step of the last minute, the
// tokens a second of the last two. The I/O thread's.
class LoadMeter {
 public:
  void add(const StepStats& stats, Instant now);
  // `held`: sequences handed to the scheduler and not over; those of them that it has not seen
  // wait.
  api::RunnerEvent event(int held, Instant now);

 private:
  struct Peak {
    Instant since{};
    double step_ms = 0;
  };
  struct Sample {
    Instant at;
    std::int64_t tokens;
    double passes_ms;
    double outside_ms;
  };
  Sample sample(Instant at) const {
    return {at, stats_.tokens, stats_.passes_ms, stats_.outside_ms};
  }

  StepStats stats_;
  Peak peak_;                  // of the current half minute
  double peak_before_ms_ = 0;  // of the one before
  std::deque<Sample> samples_;
};

}  // namespace flotilla::runner
