#include "cluster/watchdog.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace flotilla::cluster {

namespace {
constexpr Duration kLeast = std::chrono::seconds(5);
constexpr int kSteps = 20;

std::int64_t bucket_number(Instant now) {
  return std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count() / 10;
}
}  // namespace

void Watchdog::start(bool external, Instant now) {
  external_ = external;
  heard_ = any_ = progress_ = now;
  step_ = 0;
  stepping_ = false;
  longest_.fill({});
}

void Watchdog::beat(const Heartbeat& beat, Instant now) {
  heard_ = any_ = now;
  const bool work = beat.running + beat.waiting > 0;
  if (beat.step != step_ || !work || !stepping_) progress_ = now;
  step_ = beat.step;
  stepping_ = work;
  const std::int64_t number = bucket_number(now);
  Bucket& bucket = longest_[static_cast<std::size_t>(number) % kBuckets];
  if (bucket.number != number) bucket = {.number = number, .longest = {}};
  bucket.longest = std::max(bucket.longest, beat.step_max);
}

void Watchdog::work_began(Instant now) { heard_ = std::max(heard_, now); }

void Watchdog::forgive(Duration gap) {
  heard_ += gap;
  any_ += gap;
  progress_ += gap;
}

Duration Watchdog::limit(Instant now) const {
  const std::int64_t number = bucket_number(now);
  Duration longest{};
  for (const Bucket& bucket : longest_) {
    if (number - bucket.number < static_cast<std::int64_t>(kBuckets)) {
      longest = std::max(longest, bucket.longest);
    }
  }
  return std::max(kLeast, kSteps * longest);
}

std::optional<std::string> Watchdog::check(bool busy, Instant now) const {
  if (now - any_ > silence_) return fmt::format("hang: silent for {:.0f} s", to_s(now - any_));
  if (external_) return std::nullopt;
  const Duration most = limit(now);
  if (busy && now - heard_ > most) {
    return fmt::format("hang: silent for {:.1f} s with requests in it", to_s(now - heard_));
  }
  if (stepping_ && now - progress_ > most) {
    return fmt::format("hang: step {} stands still for {:.1f} s while work waits", step_,
                       to_s(now - progress_));
  }
  return std::nullopt;
}

}  // namespace flotilla::cluster
