#pragma once

#include <algorithm>

#include "base/clock.h"
#include "base/random.h"

namespace flotilla::cluster {

// The pause between two attempts: min, 2 min, 4 min ... max, each plus 0-10 % so that the replicas
// of a node that came back do not move in step. No limit on attempts.
class Backoff {
 public:
  Backoff(Duration min, Duration max) : min_(min), max_(std::max(min, max)) {}

  Duration next(Random& random) {
    current_ = current_ == Duration::zero() ? min_ : std::min(current_ * 2, max_);
    const double jitter = random.uniform() * 0.1;
    return current_ + std::chrono::duration_cast<Duration>(current_ * jitter);
  }
  void reset() { current_ = Duration::zero(); }
  void configure(Duration min, Duration max) {
    min_ = min;
    max_ = std::max(min, max);
    current_ = std::min(current_, max_);
  }

 private:
  Duration min_;
  Duration max_;
  Duration current_{};  // of the last pause without jitter; zero: none since reset
};

}  // namespace flotilla::cluster
