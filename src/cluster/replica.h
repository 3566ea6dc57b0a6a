#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/id.h"
#include "base/random.h"
#include "cluster/backoff.h"
#include "cluster/load_plan.h"
#include "cluster/settings.h"
#include "cluster/status.h"
#include "cluster/ticket.h"
#include "cluster/watchdog.h"

namespace flotilla::cluster {

// What is known of the link to a replica's node when the replica is added.
enum class Link : std::uint8_t { Up, Connecting, Away };

// What becomes of a replica when it is drained.
enum class AfterDrain : std::uint8_t {
  Hold,     // stays loaded and idle until resume()
  Restart,  // a fresh launch, then back in dispatch
  Remove,   // stopped for good: unload, a node taken out, an old generation
};

// How a runner ended.
struct Exit {
  std::string reason;  // for status: "killed by signal 9", "exit 1: cannot open model"
  bool own_fault =
      false;  // SEGV, ABRT, BUS, FPE, memory kill, non-zero exit; not SIGKILL by someone
  std::vector<TicketId> named = {};  // by its breadcrumb, where there is one
  bool by_chance = false;            // before it was ready, of what is not there the next time
};

// What an event asks of the pool, in this order: drop the launch's requests, stop its runner, start
// the next launch.
struct ReplicaEffects {
  std::optional<std::uint32_t> drop = {};
  std::optional<std::uint32_t> stop = {};
  std::optional<std::uint32_t> start = {};
  bool changed = false;  // state moved: dispatch has to look again
};

// The life of one replica: starting -> loading -> ready -> (draining) -> waiting -> starting ...,
// any -> stopped by removal. No limit on attempts; nothing here knows of other replicas.
//
// After a loss: one immediate attempt if it had been ready for `stable`, else and afterwards the
// backoff. While the node is away no attempt is made and the backoff does not grow; it starts at
// once when the node is back.
class Replica {
 public:
  // `before`: its index and a launch that nobody has; its own are numbered from the next one on.
  Replica(Launch before, NodeId node, Generation generation, const HealSettings& settings);

  ReplicaEffects begin(Link link, Instant now);
  ReplicaEffects on_loading(std::uint64_t loaded, std::uint64_t total, Instant now);
  ReplicaEffects on_ready(ReplicaInfo info, Instant now);
  // The runner is gone, or never came. `stop`: it has to be ended first (hang, stall).
  ReplicaEffects on_failed(std::string reason, bool stop, Random& random, Instant now);
  // Exit::by_chance: at once anew, three times in a row, and no attempt was over.
  ReplicaEffects on_mishap(std::string reason, Random& random, Instant now);
  ReplicaEffects on_node_lost(const std::string& reason, Instant now);
  ReplicaEffects on_node_back(Instant now);
  ReplicaEffects adopt(ReplicaInfo info, Instant now);
  ReplicaEffects drain(AfterDrain after, bool force, Instant now);
  // No request is left in it.
  ReplicaEffects on_idle(Instant now);
  ReplicaEffects resume(Instant now);
  ReplicaEffects tick(bool busy, Random& random, Instant now);
  void on_heartbeat(const Heartbeat& beat, Instant now);
  void configure(const HealSettings& settings);

  ReplicaIndex index() const { return index_; }
  const NodeId& node() const { return node_; }
  Generation generation() const { return generation_; }
  ReplicaState state() const { return state_; }
  Launch launch() const { return {index_, launch_}; }
  const ReplicaInfo& info() const { return info_; }
  bool live() const { return state_ == ReplicaState::Ready || state_ == ReplicaState::Draining; }
  bool node_away() const { return !node_up_ && state_ == ReplicaState::Waiting; }
  bool removing() const { return after_ == AfterDrain::Remove; }
  // It was ready before, or failed since: a request must not trust it with all its places at once.
  bool shaky() const { return restarts_ > 0 || ever_failed_; }
  Watchdog& watchdog() { return watchdog_; }
  const std::string& last_error() const { return last_error_; }
  // When tick has something to do, hang detection aside.
  Instant next_due() const;
  // When it may serve: now if it does or nobody can tell, its next attempt, never (max).
  Instant expected(Instant now) const;
  // All but what dispatch knows.
  ReplicaStatus status(Instant now) const;

 private:
  ReplicaEffects launch(Instant now);
  ReplicaEffects lose();  // out of dispatch
  ReplicaEffects finish_drain(Instant now);
  bool launched() const { return state_ == ReplicaState::Starting && waiting_link_ == false; }
  bool has_runner() const { return live() || launched() || state_ == ReplicaState::Loading; }

  ReplicaIndex index_;
  NodeId node_;
  Generation generation_;
  HealSettings settings_;
  ReplicaState state_ = ReplicaState::Starting;
  std::uint32_t launch_ = 0;
  bool node_up_ = false;
  bool waiting_link_ = true;  // starting, but the link is not up yet
  std::optional<AfterDrain> after_;
  Backoff backoff_;
  LoadMeter meter_;
  Watchdog watchdog_;
  ReplicaInfo info_;
  Instant attempt_began_{};
  Instant ready_since_{};
  Instant retry_at_ = Instant::max();
  Instant drain_until_ = Instant::max();
  std::uint32_t attempts_ = 0;
  std::uint32_t restarts_ = 0;
  std::uint32_t mishaps_ = 0;  // since it was last ready
  bool ever_ready_ = false;
  bool ever_failed_ = false;
  bool first_attempt_over_ = false;
  std::string last_error_;
  Heartbeat last_beat_;
};

}  // namespace flotilla::cluster
