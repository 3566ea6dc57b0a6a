#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "cluster/ticket.h"

namespace flotilla::cluster {

enum class ReplicaState : std::uint8_t {
  Starting,  // launched, or about to be when its node's link is up
  Loading,
  Ready,
  Draining,  // finishes what it has, takes nothing new
  Down,      // lost a moment ago (shown only between two calls; becomes Waiting)
  Waiting,   // for its next attempt, or for its node
  Stopped,
};
const char* to_string(ReplicaState state);  // "starting", ...

// What a runner says of itself when it is ready.
struct ReplicaInfo {
  int width = 1;                  // sequences together; places = width + ahead
  std::string batch_reason = {};  // why the width is lower than asked; empty otherwise
  int context = 0;
  std::string numerics = {};  // same id: bit-identical continuation between replicas
  bool exact_resume = false;
  std::uint64_t model_bytes = 0;
  std::uint64_t kv_bytes = 0;
  bool external = false;  // a foreign engine: no step counter, no resume
};

// One replica as status shows it.
struct ReplicaStatus {
  ReplicaIndex index{};
  NodeId node;
  Generation generation{};
  ReplicaState state = ReplicaState::Starting;
  bool live = false;           // ready or draining: its runner serves
  bool node_away = false;      // "waiting (node away)"
  int busy_count = 0;          // requests in it
  int places = 0;              // as many as it takes at this moment (slow start included)
  int queued = 0;              // tickets that wait for it as their home
  std::uint32_t attempts = 0;  // since it was last ready
  std::uint32_t restarts = 0;  // times it came back
  std::optional<Duration> next_retry;
  std::string last_error;
  bool first_attempt_over = false;  // ready, or failed once
  std::uint64_t loaded_bytes = 0;
  std::uint64_t total_bytes = 0;
  double bytes_per_s = 0;
  bool stalled = false;
  std::optional<Duration> eta;  // of the load
  double tokens_per_s = 0;      // generated, over the last seconds
  double step_overhead = 0;     // these as in its last heartbeat
  std::int64_t resident_bytes = 0;
  std::string trimmed = {};
  ReplicaInfo info;  // of the last time it was ready
};

// A conversation and the replica that holds its state.
struct SessionStatus {
  std::uint64_t id = 0;
  NodeId node;
  Duration idle{};           // since it was last seen
  std::uint64_t tokens = 0;  // held there; 0: not known
  bool named = false;        // by a session id of the client's
};

struct PoolStatus {
  Alias alias;
  Generation generation{};  // that new requests go to
  int replicas_live = 0;
  int replicas_total = 0;
  std::size_t queue_depth = 0;
  std::size_t in_flight = 0;
  double tokens_per_s = 0;
  bool exact_resume = false;            // every live replica says so and reports the same numerics
  std::vector<ReplicaStatus> replicas;  // in the order in which they were added
};

}  // namespace flotilla::cluster
