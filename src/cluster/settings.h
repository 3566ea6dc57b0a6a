#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace flotilla::cluster {

// How a replica is kept alive (knobs of the same names).
struct HealSettings {
  Duration backoff_min = std::chrono::seconds(30);       // REPLICA_BACKOFF_MIN_S
  Duration backoff_max = std::chrono::seconds(300);      // REPLICA_BACKOFF_MAX_S
  Duration stable = std::chrono::seconds(60);            // REPLICA_STABLE_S
  Duration restart_timeout = std::chrono::seconds(900);  // REPLICA_RESTART_TIMEOUT_S
  Duration load_stall = std::chrono::seconds(120);       // without a loaded byte: stalled
  Duration watchdog = std::chrono::seconds(30);          // REPLICA_WATCHDOG_S: silence of a runner
  Duration drain = std::chrono::seconds(120);            // DRAIN_S
};

struct QueueSettings {
  std::size_t tickets_max = 4096;                  // QUEUE_MAX
  std::uint64_t bytes_max = 256ULL * 1024 * 1024;  // QUEUE_MAX_BYTES
  Duration age_max = std::chrono::seconds(600);    // QUEUE_MAX_AGE_S
};

struct AffinitySettings {
  Duration ttl = std::chrono::seconds(1800);  // REPLICA_AFFINITY_TTL_S, idle
  std::size_t entries_max = 400'000;          // ~64 bytes each
  int concurrent_max = 0;                     // REPLICA_MAX_CONCURRENT; 0: max(16, 2 x width)
};

// All of a pool; may be changed while it runs (Pool::configure).
struct PoolSettings {
  HealSettings heal;
  QueueSettings queue;
  AffinitySettings affinity;
  int ahead = 2;  // RUNNER_AHEAD: places beyond the width; 0 without batch
};

}  // namespace flotilla::cluster
