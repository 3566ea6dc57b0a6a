#include "cluster/replica.h"

#include <algorithm>
#include <utility>

namespace flotilla::cluster {

namespace {
constexpr std::uint32_t kMishapsMax = 3;
}  // namespace

const char* to_string(ReplicaState state) {
  switch (state) {
    case ReplicaState::Starting: return "starting";
    case ReplicaState::Loading: return "loading";
    case ReplicaState::Ready: return "ready";
    case ReplicaState::Draining: return "draining";
    case ReplicaState::Down: return "down";
    case ReplicaState::Waiting: return "waiting";
    case ReplicaState::Stopped: return "stopped";
  }
  return "";
}

Replica::Replica(Launch before, NodeId node, Generation generation, const HealSettings& settings)
    : index_(before.replica),
      node_(std::move(node)),
      generation_(generation),
      settings_(settings),
      launch_(before.number),
      backoff_(settings.backoff_min, settings.backoff_max),
      watchdog_(settings.watchdog) {}

ReplicaEffects Replica::begin(Link link, Instant now) {
  if (link == Link::Up) return on_node_back(now);
  if (link == Link::Away) return on_node_lost("not reachable", now);
  return {.changed = true};
}

ReplicaEffects Replica::launch(Instant now) {
  ++launch_;
  ++attempts_;
  state_ = ReplicaState::Starting;
  waiting_link_ = false;
  attempt_began_ = now;
  retry_at_ = drain_until_ = Instant::max();
  if (after_ == AfterDrain::Restart) after_.reset();
  meter_.start(now);
  return {.start = launch_, .changed = true};
}

ReplicaEffects Replica::lose() {
  ReplicaEffects effects{.changed = true};
  if (live()) effects.drop = launch_;
  state_ = ReplicaState::Down;
  last_beat_ = {};
  drain_until_ = Instant::max();
  return effects;
}

ReplicaEffects Replica::on_loading(std::uint64_t loaded, std::uint64_t total, Instant now) {
  if (state_ != ReplicaState::Starting && state_ != ReplicaState::Loading) return {};
  const bool changed = state_ != ReplicaState::Loading;
  state_ = ReplicaState::Loading;
  meter_.add(loaded, total, now);
  return {.changed = changed};
}

ReplicaEffects Replica::on_ready(ReplicaInfo info, Instant now) {
  if (!launched() && state_ != ReplicaState::Loading) return {};
  info_ = std::move(info);
  state_ = after_ ? ReplicaState::Draining : ReplicaState::Ready;
  ready_since_ = now;
  attempts_ = mishaps_ = 0;
  if (ever_ready_) ++restarts_;
  ever_ready_ = first_attempt_over_ = true;
  watchdog_.start(info_.external, now);
  return {.changed = true};
}

ReplicaEffects Replica::on_failed(std::string reason, bool stop, Random& random, Instant now) {
  if (!has_runner()) return {};
  const bool was_live = live();
  const std::uint32_t ended = launch_;
  ReplicaEffects effects = lose();
  if (stop) effects.stop = ended;
  last_error_ = std::move(reason);
  ever_failed_ = first_attempt_over_ = true;
  if (after_ == AfterDrain::Remove) {
    state_ = ReplicaState::Stopped;
    return effects;
  }
  const bool stable = was_live && now - ready_since_ >= settings_.stable;
  if (stable) backoff_.reset();
  if (stable || after_ == AfterDrain::Restart) {
    effects.start = launch(now).start;
  } else {
    state_ = ReplicaState::Waiting;
    retry_at_ = now + backoff_.next(random);
  }
  return effects;
}

ReplicaEffects Replica::on_mishap(std::string reason, Random& random, Instant now) {
  if (live() || !has_runner() || removing() || mishaps_ >= kMishapsMax)
    return on_failed(std::move(reason), false, random, now);
  ++mishaps_;
  last_error_ = std::move(reason);
  return launch(now);
}

ReplicaEffects Replica::on_node_lost(const std::string& reason, Instant now) {
  node_up_ = false;
  if (state_ == ReplicaState::Stopped) return {};
  if (live() && now - ready_since_ >= settings_.stable) backoff_.reset();
  ReplicaEffects effects = lose();
  last_error_ = "node away: " + reason;
  first_attempt_over_ = true;
  waiting_link_ = true;
  retry_at_ = Instant::max();
  // What its agent keeps for a while is not in the desired state any more and ends with the grace.
  state_ = removing() ? ReplicaState::Stopped : ReplicaState::Waiting;
  return effects;
}

ReplicaEffects Replica::on_node_back(Instant now) {
  const bool was_away = !node_up_;
  node_up_ = true;
  if (state_ == ReplicaState::Stopped || !was_away) return {};
  return launch(now);
}

ReplicaEffects Replica::adopt(ReplicaInfo info, Instant now) {
  if (state_ == ReplicaState::Stopped) return {};
  node_up_ = true;
  waiting_link_ = false;
  ReplicaEffects effects;
  if (live()) effects.drop = launch_;  // its connections were of the link that is gone
  ++launch_;
  retry_at_ = Instant::max();
  state_ = ReplicaState::Loading;
  const std::uint32_t restarts = restarts_;
  effects.changed = on_ready(std::move(info), now).changed;
  restarts_ = restarts;
  return effects;
}

ReplicaEffects Replica::drain(AfterDrain after, bool force, Instant now) {
  if (state_ == ReplicaState::Stopped || removing()) {
    if (!force || state_ == ReplicaState::Stopped) return {};
    after = AfterDrain::Remove;
  }
  after_ = after;
  drain_until_ = after == AfterDrain::Hold ? Instant::max() : now + settings_.drain;
  if (live()) {
    state_ = ReplicaState::Draining;
    if (force && after != AfterDrain::Hold) return finish_drain(now);
    return {.changed = true};
  }
  if (after == AfterDrain::Hold) return {.changed = true};
  return finish_drain(now);
}

ReplicaEffects Replica::finish_drain(Instant now) {
  if (after_ == AfterDrain::Hold) return {};
  const bool stop = has_runner();
  const bool can_start = node_up_ && after_ == AfterDrain::Restart;
  const std::uint32_t ended = launch_;
  const ReplicaState before = state_;
  ReplicaEffects effects = lose();
  if (stop) effects.stop = ended;
  if (after_ == AfterDrain::Remove) {
    state_ = ReplicaState::Stopped;
    retry_at_ = Instant::max();
  } else if (can_start) {
    effects.start = launch(now).start;
  } else {
    state_ = before;  // its node is away or not reached yet: the attempt comes with it
    after_.reset();
  }
  return effects;
}

ReplicaEffects Replica::on_idle(Instant now) {
  return state_ == ReplicaState::Draining ? finish_drain(now) : ReplicaEffects{};
}

ReplicaEffects Replica::resume(Instant) {
  if (after_ != AfterDrain::Hold) return {};
  after_.reset();
  if (state_ == ReplicaState::Draining) state_ = ReplicaState::Ready;
  return {.changed = true};
}

ReplicaEffects Replica::tick(bool busy, Random& random, Instant now) {
  if (state_ == ReplicaState::Waiting && node_up_ && now >= retry_at_) return launch(now);
  if ((launched() || state_ == ReplicaState::Loading) &&
      now - attempt_began_ >= settings_.restart_timeout &&
      now - meter_.grew() >= settings_.load_stall) {
    return on_failed("load stalled: no byte more for too long", true, random, now);
  }
  if (state_ == ReplicaState::Draining && now >= drain_until_) return finish_drain(now);
  if (live()) {
    if (std::optional<std::string> hang = watchdog_.check(busy, now)) {
      return on_failed(std::move(*hang), true, random, now);
    }
  }
  return {};
}

void Replica::on_heartbeat(const Heartbeat& beat, Instant now) {
  if (!live()) return;
  watchdog_.beat(beat, now);
  last_beat_ = beat;
}

void Replica::configure(const HealSettings& settings) {
  settings_ = settings;
  backoff_.configure(settings.backoff_min, settings.backoff_max);
  watchdog_.configure(settings.watchdog);
}

Instant Replica::next_due() const {
  if (state_ == ReplicaState::Waiting) return node_up_ ? retry_at_ : Instant::max();
  if (state_ == ReplicaState::Draining) return drain_until_;
  if (launched() || state_ == ReplicaState::Loading) {
    return std::max(attempt_began_ + settings_.restart_timeout,
                    meter_.grew() + settings_.load_stall);
  }
  return Instant::max();
}

Instant Replica::expected(Instant now) const {
  if (state_ == ReplicaState::Stopped || after_ == AfterDrain::Remove ||
      after_ == AfterDrain::Hold) {
    return Instant::max();
  }
  if (state_ == ReplicaState::Waiting && node_up_) return std::max(now, retry_at_);
  return now;
}

ReplicaStatus Replica::status(Instant now) const {
  ReplicaStatus out;
  out.index = index_;
  out.node = node_;
  out.generation = generation_;
  out.state = state_;
  out.live = live();
  out.node_away = node_away();
  out.attempts = attempts_;
  out.restarts = restarts_;
  out.last_error = last_error_;
  out.first_attempt_over = first_attempt_over_;
  out.info = info_;
  out.tokens_per_s = last_beat_.tokens_per_s;
  out.step_overhead = last_beat_.step_overhead;
  out.resident_bytes = last_beat_.resident_bytes;
  out.trimmed = last_beat_.trimmed;
  if (state_ == ReplicaState::Waiting && node_up_) {
    out.next_retry = std::max(Duration::zero(), retry_at_ - now);
  }
  out.loaded_bytes = meter_.loaded();
  out.total_bytes = meter_.total();
  if (launched() || state_ == ReplicaState::Loading) {
    out.bytes_per_s = meter_.bytes_per_s(now);
    out.stalled = now - meter_.grew() >= settings_.load_stall;
    out.eta = meter_.eta(now);
  }
  return out;
}

}  // namespace flotilla::cluster
