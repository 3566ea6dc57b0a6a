#include "engine/thread_choice.h"

#include <algorithm>

namespace flotilla::engine {

void ThreadChoice::observe(double wall_ms, double cpu_ms) {
  if (most_ == least_ || wall_ms <= 0) return;
  wall_ms_ += wall_ms;
  cpu_ms_ += cpu_ms;
  if (threads_ < most_) since_fewer_ms_ += wall_ms;
  if (wall_ms_ < kWindowMs) return;
  const double got = cpu_ms_ / wall_ms_;  // cores
  wall_ms_ = cpu_ms_ = 0;
  if (threads_ > least_ && got < kShareMin * threads_) {
    threads_ = std::clamp(static_cast<int>(got), least_, threads_ - 1);
    if (trying_) retry_ms_ = std::min(2 * retry_ms_, kRetryMaxMs);
    trying_ = false;
    since_fewer_ms_ = 0;
    return;
  }
  if (threads_ == most_) {
    retry_ms_ = kRetryMinMs;
    trying_ = false;
  } else if (since_fewer_ms_ >= retry_ms_ && got >= kFreeShare * threads_) {
    threads_ = most_;
    trying_ = true;
    since_fewer_ms_ = 0;
  }
}

}  // namespace flotilla::engine
