#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace flotilla::cluster {

// A runner's word on its steps (GET /runner/events, at least every second). For a foreign engine
// the gateway makes one from each byte and each good health check, with a step of its own counting.
struct Heartbeat {
  std::uint64_t step = 0;
  Duration step_max{};  // longest since the last heartbeat
  int running = 0;      // sequences that could step: a parked one does not count
  int waiting = 0;
  double tokens_per_s = 0;
  double step_overhead = 0;  // share of its steps that is not the forward pass
  std::int64_t resident_bytes = 0;
  std::string trimmed = {};  // what its last look for memory gave back
};

// Tells a hang from work. Hung: steps stand still while the runner says that work waits, or it says
// nothing at all while requests are in it, for max(5 s, 20 x the longest step of the last minute);
// or it is silent for `silence` (REPLICA_WATCHDOG_S) whatever it does. A foreign engine has no
// steps, so only the last rule holds for it.
class Watchdog {
 public:
  explicit Watchdog(Duration silence) : silence_(silence) {}

  void start(bool external, Instant now);  // the runner is ready
  void beat(const Heartbeat& beat, Instant now);
  // A request came to an idle runner.
  void work_began(Instant now);
  // The gateway itself stood still: its silence is not the runner's.
  void forgive(Duration gap);
  // Why it is hung; nothing if it is not. `busy`: the gateway has requests in it.
  std::optional<std::string> check(bool busy, Instant now) const;
  Duration limit(Instant now) const;
  void configure(Duration silence) { silence_ = silence; }

 private:
  static constexpr std::size_t kBuckets = 7;  // of 10 s: a minute and the one being filled
  struct Bucket {
    std::int64_t number = -1;
    Duration longest{};
  };

  Duration silence_;
  bool external_ = false;
  Instant heard_{};     // last heartbeat, or when it could first have answered the work given to it
  Instant any_{};       // last heartbeat or start
  Instant progress_{};  // last time a step was made, or nothing was to be done
  std::uint64_t step_ = 0;
  bool stepping_ = false;  // it says that work is there
  std::array<Bucket, kBuckets> longest_{};
};

}  // namespace flotilla::cluster
