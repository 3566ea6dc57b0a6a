#include "sim/checkers.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace flotilla::sim {

using namespace cluster;

namespace {
unsigned number(ReplicaIndex index) { return static_cast<unsigned>(index); }
unsigned long number(TicketId id) { return static_cast<unsigned long>(id); }
}  // namespace

void Checkers::breaks(std::string promise) {
  if (!broken_) broken_ = std::move(promise);
}

void Checkers::on_added(ReplicaIndex replica, Generation generation) {
  const auto kept = static_cast<std::size_t>(std::count_if(
      shadows_.begin(), shadows_.end(), [](const auto& entry) { return !entry.second.gone(); }));
  const auto [found, is_new] = shadows_.try_emplace(replica);
  Shadow& it = found->second;
  if (!is_new && !it.gone()) {
    breaks(fmt::format("replica {} is there and its place is another's", number(replica)));
  }
  // A place stays empty only while a ticket that was in it has not ended.
  if (is_new && shadows_.size() > kept + tickets_.size() + 1) {
    breaks(fmt::format("a {}th place is made for {} replicas and {} tickets", shadows_.size(),
                       kept + 1, tickets_.size()));
  }
  const std::uint32_t last = it.last;
  it = Shadow{};
  it.generation = generation;
  it.last = last;
}

void Checkers::on_start(const StartReplica& start, Instant now) {
  Shadow& it = shadow(start.launch.replica);
  const auto name = number(start.launch.replica);
  if (it.removed) breaks(fmt::format("replica {} was removed and is started", name));
  if (!it.node_up) breaks(fmt::format("replica {} is started though its node is away", name));
  if (it.starts) breaks(fmt::format("replica {} is started while its runner is there", name));
  if (start.launch.number <= it.last) {
    breaks(fmt::format("launch {} of replica {} is there twice", start.launch.number, name));
  }
  it.last = start.launch.number;
  if (it.failed != Instant{} && !it.asked && !it.came_back && !it.stable) {
    const HealSettings& heal = scenario_.settings.heal;
    if (now - it.failed < heal.backoff_min) {
      breaks(fmt::format("replica {} is tried again after {:.1f} s, before the backoff", name,
                         to_s(now - it.failed)));
    }
  }
  it.starts = true;
  it.current = start.launch.number;
  it.asked = it.came_back = it.stable = false;
  it.failed = Instant{};
}

void Checkers::on_ready(Launch launch, int places, Instant now) {
  Shadow& it = shadow(launch.replica);
  if (it.current != launch.number || !it.starts) return;  // it was given up before
  it.ready = launch.number;
  if (!it.held && !it.removed) it.draining = false;
  it.places = places;
  it.inside = 0;
  it.ready_since = now;
}

void Checkers::on_adopted(Launch launch, int places, Instant now) {
  Shadow& it = shadow(launch.replica);
  it.last = std::max(it.last, launch.number);
  it.current = launch.number;
  it.starts = true;
  it.failed = Instant{};
  on_ready(launch, places, now);
}

void Checkers::on_stop(Launch launch, Instant now) {
  Shadow& it = shadow(launch.replica);
  if (it.current != launch.number) return;
  on_failure(launch, now);
}

void Checkers::on_failure(Launch launch, Instant now) {
  Shadow& it = shadow(launch.replica);
  if (!it.starts || it.current != launch.number) return;
  it.starts = false;
  it.failed = now;
  it.came_back = false;
  it.stable = it.ready != 0 && now - it.ready_since >= scenario_.settings.heal.stable;
  it.ready = 0;
}

void Checkers::on_drop(const DropReplica& drop, Instant now) {
  Shadow& it = shadow(drop.launch.replica);
  if (drop.tickets.size() != static_cast<std::size_t>(it.inside)) {
    breaks(fmt::format("replica {} was dropped with {} tickets, {} were in it",
                       number(drop.launch.replica), drop.tickets.size(), it.inside));
  }
  if (drop.reason == "drained" && !drop.tickets.empty() && now < it.drain_until) {
    breaks(fmt::format("replica {} is called drained with {} tickets in it",
                       number(drop.launch.replica), drop.tickets.size()));
  }
  for (const TicketId id : drop.tickets) on_left(id);
  on_failure(drop.launch, now);
  it.ready = 0;
}

void Checkers::on_node(ReplicaIndex replica, bool up, Instant now) {
  Shadow& it = shadow(replica);
  it.node_up = up;
  it.came_back = up;
  if (!up) {
    it.starts = false;
    it.failed = now;
  }
}

void Checkers::on_came_back(ReplicaIndex replica) {
  if (!shadow(replica).starts) {
    breaks(fmt::format("replica {} is not started though its node is back", number(replica)));
  }
}

void Checkers::on_drain(ReplicaIndex replica, AfterDrain after, bool force, Instant now) {
  Shadow& it = shadow(replica);
  if (force) {
    it.drain_until = now;
  } else if (!it.removed) {
    it.drain_until = now + scenario_.settings.heal.drain;
  }
  it.draining = true;
  it.held = after == AfterDrain::Hold;
  it.asked = after == AfterDrain::Restart;
  it.removed = it.removed || after == AfterDrain::Remove;
}

void Checkers::on_resume(ReplicaIndex replica) {
  Shadow& it = shadow(replica);
  if (it.held && !it.removed) it.held = it.draining = false;
}

void Checkers::on_submitted(const Ticket& ticket, Instant) {
  const auto [found, added] = tickets_.try_emplace(ticket.id);
  if (!added) breaks("the simulator used a ticket twice");
  Held& held = found->second;
  held.key = ticket.key;
  held.weight = ticket.weight;
  held.tokens = ticket.tokens;
  held.deadline = ticket.deadline;
}

double Checkers::floor() const {
  std::optional<double> least;
  for (const auto& [key, count] : waiting_) {
    if (count > 0) least = std::min(least.value_or(counters_.at(key)), counters_.at(key));
  }
  return least.value_or(served_);
}

void Checkers::join(const std::string& key) {
  const double least = floor();
  double& counter = counters_.try_emplace(key, least).first->second;
  if (waiting_[key] == 0) counter = std::max(counter, least);
}

void Checkers::on_queued(TicketId id, Instant) {
  Held& held = tickets_.at(id);
  if (!held.accepted) ++accepted_;
  join(held.key);
  held.accepted = held.waits = true;
  ++waiting_[held.key];
}

void Checkers::on_waits_again(TicketId id) { tickets_.at(id).accepted = true; }

void Checkers::charge(const Held& held) {
  if (!held.waits) join(held.key);
  double& counter = counters_.at(held.key);
  const bool others =
      std::any_of(waiting_.begin(), waiting_.end(), [](const auto& w) { return w.second > 0; });
  const double least = others ? floor() : counter;
  if (scenario_.sessions == 0 && counter > least + 1e-6 * (1 + least)) {
    breaks(fmt::format("key {} is served at {:.0f} tokens while one at {:.0f} waits", held.key,
                       counter, least));
  }
  served_ = std::max(served_, least);
  counter += static_cast<double>(held.tokens) / held.weight;
}

void Checkers::on_dispatched(TicketId id, Launch launch, bool resumes, Instant) {
  const auto found = tickets_.find(id);
  if (found == tickets_.end())
    return breaks(fmt::format("ticket {} was dispatched after its end", number(id)));
  Held& held = found->second;
  Shadow& it = shadow(launch.replica);
  const auto name = number(launch.replica);
  if (held.in) breaks(fmt::format("ticket {} was dispatched twice", number(id)));
  if (it.ready == 0 || it.ready != launch.number) {
    breaks(fmt::format("ticket {} was sent to replica {} which is not ready", number(id), name));
  }
  if (held.began && *held.began != it.generation) {
    breaks(fmt::format("ticket {} began in generation {} and goes on in {}", number(id),
                       static_cast<unsigned>(*held.began), static_cast<unsigned>(it.generation)));
  }
  if (it.draining && !resumes) breaks(fmt::format("replica {} drains and got a new request", name));
  if (++it.inside > it.places) {
    breaks(fmt::format("replica {} holds {} tickets on {} places", name, it.inside, it.places));
  }
  if (!held.accepted) ++accepted_;
  if (!resumes) charge(held);
  if (held.waits) --waiting_[held.key];
  held.accepted = true;
  held.waits = false;
  held.in = launch;
}

void Checkers::on_first_byte(TicketId id) {
  const auto found = tickets_.find(id);
  if (found == tickets_.end() || !found->second.in) return;
  found->second.began = shadow(found->second.in->replica).generation;
}

void Checkers::on_left(TicketId id) {
  const auto found = tickets_.find(id);
  if (found == tickets_.end() || !found->second.in) return;
  Shadow& it = shadow(found->second.in->replica);
  if (it.ready == found->second.in->number || it.inside > 0) --it.inside;
  found->second.in.reset();
}

void Checkers::on_served(TicketId id, std::uint64_t actual) {
  const auto found = tickets_.find(id);
  if (found == tickets_.end()) return;
  const Held& held = found->second;
  double& counter = counters_.at(held.key);
  const double by = (static_cast<double>(actual) - static_cast<double>(held.tokens)) / held.weight;
  counter = std::max(0.0, counter + by);
}

void Checkers::on_ended(TicketId id, Instant) {
  const auto found = tickets_.find(id);
  if (found == tickets_.end()) return breaks(fmt::format("ticket {} ended twice", number(id)));
  on_left(id);
  if (found->second.waits) --waiting_[found->second.key];
  if (found->second.accepted) ++ended_;
  tickets_.erase(found);
}

void Checkers::on_refused(TicketId id, const Error& error, bool accepted, Instant now) {
  const auto found = tickets_.find(id);
  if (found == tickets_.end())
    return breaks(fmt::format("ticket {} was refused after its end", number(id)));
  const Held& held = found->second;
  if (accepted && error.reason == "queue_timeout" &&
      now < std::min(held.deadline, now + scenario_.settings.queue.age_max) -
                std::chrono::seconds(1) &&
      now + std::chrono::seconds(1) < held.deadline - scenario_.settings.queue.age_max) {
    breaks(fmt::format("ticket {} was given up before its time", number(id)));
  }
  // Where runners also crash by chance, a request may be in two of them by bad luck.
  if (accepted && error.reason == "poison" && held.kills == 0 && !scenario_.has(Fault::Crash)) {
    breaks(fmt::format("ticket {} is called poison and killed nobody", number(id)));
  }
  if (accepted && error.reason == "replicas_failed" && !scenario_.has(Fault::FailFast) &&
      !scenario_.has(Fault::Kill)) {
    breaks(fmt::format("ticket {} failed everywhere though no replica fails", number(id)));
  }
  if (error.code == Code::ResourceExhausted || error.code == Code::Unavailable) {
    if (error.reason != "closed" && (error.retry_after_s < 1 || error.retry_after_s > 300)) {
      breaks(fmt::format("Retry-After of {} s", error.retry_after_s));
    }
  }
  on_ended(id, now);
}

void Checkers::on_killed_by(TicketId id, Launch launch) {
  if (shadow(launch.replica).ready != launch.number) return;  // lost before, for all it knew
  const auto found = tickets_.find(id);
  if (found == tickets_.end()) return;
  if (++found->second.kills > 2) breaks(fmt::format("ticket {} killed three runners", number(id)));
}

void Checkers::on_view(const PoolStatus& status, bool late, Instant now) {
  const HealSettings& heal = scenario_.settings.heal;
  int live = 0;
  std::size_t homes = 0;
  std::size_t unserved = 0;  // those that failed once may wait for another replica than this
  for (const auto& [key, count] : waiting_) unserved += static_cast<std::size_t>(count);
  for (const ReplicaStatus& replica : status.replicas)
    homes += static_cast<std::size_t>(replica.queued);
  for (const ReplicaStatus& replica : status.replicas) {
    Shadow& it = shadow(replica.index);
    live += replica.live ? 1 : 0;
    if (replica.busy_count != it.inside) {
      breaks(fmt::format("replica {} says busy_count {}, {} are in it", number(replica.index),
                         replica.busy_count, it.inside));
    }
    if (!late && !replica.live && !it.starts && it.node_up && it.failed != Instant{} &&
        to_s(now - it.failed) > to_s(heal.backoff_max) * 1.1 + 2) {
      breaks(fmt::format("replica {} failed {:.0f} s ago and is not tried", number(replica.index),
                         to_s(now - it.failed)));
    }
    if (replica.next_retry && to_s(*replica.next_retry) > to_s(heal.backoff_max) * 1.1 + 1) {
      breaks(fmt::format("next retry in {:.0f} s", to_s(*replica.next_retry)));
    }
    if (replica.queued > 0 && replica.state != ReplicaState::Ready) {
      breaks(fmt::format("{} wait for replica {} which is {}", replica.queued,
                         number(replica.index), to_string(replica.state)));
    }
    // Whoever waits for its home or may have crashed a runner leaves places free for a while.
    const bool any_place = scenario_.sessions == 0 && !scenario_.has(Fault::Poison) &&
                           !scenario_.has(Fault::Crash) && !scenario_.has(Fault::LoadFails);
    const bool idle = replica.state == ReplicaState::Ready && replica.busy_count < replica.places &&
                      (any_place || replica.busy_count == 0) &&
                      replica.generation == status.generation && unserved > homes &&
                      !scenario_.has(Fault::Reload);
    it.idle_seconds = idle ? it.idle_seconds + 1 : 0;
    if (it.idle_seconds > (any_place ? 2 : 5)) {
      breaks(fmt::format("replica {} has a free place while {} wait", number(replica.index),
                         status.queue_depth));
    }
  }
  if (live != status.replicas_live) breaks("replicas_live does not add up");
}

void Checkers::on_end(const PoolStatus& status, Instant) {
  for (const ReplicaStatus& replica : status.replicas) {
    if (!replica.live) {
      breaks(fmt::format("replica {} is {} long after the last fault: {}", number(replica.index),
                         to_string(replica.state), replica.last_error));
    }
  }
  if (!tickets_.empty()) {
    breaks(fmt::format("{} requests never ended, one is {}", tickets_.size(),
                       number(tickets_.begin()->first)));
  }
  if (accepted_ != ended_) breaks(fmt::format("{} accepted, {} ended", accepted_, ended_));
}

}  // namespace flotilla::sim
