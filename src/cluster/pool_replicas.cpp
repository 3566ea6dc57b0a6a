#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/check.h"
#include "cluster/pool_state.h"

// The pool's replicas: their events, and what a change of one means for the tickets in it.
namespace flotilla::cluster {

namespace {
// How often hangs are looked for. Their least limit is 5 s.
constexpr Duration kWatch = std::chrono::milliseconds(500);
// Failures in a row, none of them a request's own. With the rests between them: more than 6 s.
constexpr std::uint32_t kUseless = 8;
}  // namespace

Pool::State::Unit* Pool::State::find_current(Launch launch) {
  const auto index = static_cast<std::size_t>(launch.replica);
  if (index >= units.size() || units[index]->replica.launch() != launch) return nullptr;
  return units[index].get();
}

// Nodes may come and go for as long as the pool lives: what the one that was in a place has left
// behind must not grow with them. A ticket that was in it may still be asked where it comes from.
std::optional<ReplicaIndex> Pool::State::find_vacant() const {
  std::set<ReplicaIndex> vacant;
  for (const auto& unit : units) {
    const ReplicaIndex index = unit->replica.index();
    if (unit->replica.state() == ReplicaState::Stopped && clearing != index &&
        queue.empty(home_lane(index)))
      vacant.insert(index);
  }
  if (vacant.empty()) return std::nullopt;
  for (const auto& [id, flight] : flights)
    if (flight.launch.number != 0) vacant.erase(flight.launch.replica);
  return vacant.empty() ? std::nullopt : std::optional(*vacant.begin());
}

void Pool::State::open(Unit& unit) {
  const ReplicaInfo& info = unit.replica.info();
  // An engine that is not ours computes all that it is sent at once.
  const int ahead = info.external && info.width <= 1 ? 0 : std::max(0, settings.ahead);
  const int places = std::max(1, info.width) + ahead;
  dispatcher.open(unit.replica.launch(), unit.replica.generation(), places, unit.replica.shaky());
}

void Pool::State::drop(Unit& unit, std::uint32_t number, const std::string& reason, Instant now) {
  const ReplicaIndex index = unit.replica.index();
  dispatcher.lose(index);
  if (clearing == index) clearing.reset();
  for (const TicketId id : unit.inside) {
    flights.at(id).where = Flight::Where::Lost;
    ++lost;
  }
  actions.push_back(DropReplica{.launch = {index, number},
                                .node = unit.replica.node(),
                                .reason = reason,
                                .tickets = std::exchange(unit.inside, {})});
  settle_doubts(unit, now);
  // Its conversations are lost with it: they wait for no one.
  for (auto it = home_limits.begin(); it != home_limits.end();) {
    Flight& flight = flights.at(it->second);
    if (flight.launch.replica != index) {
      ++it;
      continue;
    }
    flight.home_until = Instant::max();
    it = home_limits.erase(it);
  }
  queue.move_all_to_anywhere(home_lane(index));
  pump_all(now);
}

void Pool::State::apply(Unit& unit, const ReplicaEffects& effects, const std::string& reason,
                        Instant now) {
  const ReplicaIndex index = unit.replica.index();
  const bool opened = effects.changed && unit.replica.live() &&
                      (effects.drop || !dispatcher.is_current(unit.replica.launch()));
  if (effects.changed) {
    ++version;
    live = static_cast<int>(
        std::count_if(units.begin(), units.end(), [](const auto& u) { return u->replica.live(); }));
  }
  if (effects.drop) drop(unit, *effects.drop, reason, now);
  if (effects.stop) {
    actions.push_back(StopReplica{.launch = {index, *effects.stop}, .node = unit.replica.node()});
  }
  if (effects.start) {
    actions.push_back(StartReplica{.launch = {index, *effects.start},
                                   .node = unit.replica.node(),
                                   .generation = unit.replica.generation()});
  }
  if (opened) open(unit);
  if (effects.changed && unit.replica.live()) {
    const bool draining = unit.replica.state() == ReplicaState::Draining;
    dispatcher.admit(index, draining ? Admit::Resumes : Admit::Everybody);
    if (draining) {
      queue.move_all_to_anywhere(home_lane(index));
      if (clearing == index) stop_clearing();
    }
  }
  if (effects.changed) {
    choose_generation();
    if (unit.replica.state() == ReplicaState::Stopped) refuse_stranded(now);
    pump_all(now);
    settle_drain(unit, now);
  }
  wake_for(unit, now);
}

// The newest generation that takes requests; without one, it stays.
void Pool::State::choose_generation() {
  std::optional<Generation> newest;
  for (const auto& unit : units) {
    if (unit->replica.state() != ReplicaState::Ready) continue;
    newest = std::max(newest.value_or(Generation{}), unit->replica.generation());
  }
  if (!newest || *newest == serving) return;
  serving = *newest;
  for (const auto& unit : units) {
    if (unit->replica.generation() != serving)
      queue.move_all_to_anywhere(home_lane(unit->replica.index()));
  }
}

// A draining replica is done when it is empty and nothing is on its way back to its generation.
void Pool::State::settle_drain(Unit& unit, Instant now) {
  if (unit.replica.state() != ReplicaState::Draining || !unit.inside.empty()) return;
  if (unit.replica.removing() && somebody_on_the_way()) return;
  const ReplicaEffects effects = unit.replica.on_idle(now);
  if (effects.changed) apply(unit, effects, "drained", now);
}

bool Pool::State::somebody_on_the_way() const {
  return lost > 0 || doubts > 0 || !retries.empty() || !suspects.empty();
}

void Pool::State::blame(Unit& unit, const Exit& exit) {
  if (!exit.own_fault) return;
  std::vector<TicketId> there = unit.inside;
  there.insert(there.end(), unit.doubtful.begin(), unit.doubtful.end());
  std::vector<TicketId> blamed;
  for (const TicketId id : exit.named) {
    if (std::find(there.begin(), there.end(), id) == there.end()) continue;
    blamed.push_back(id);
    ++flights.at(id).named_crashes;
  }
  if (blamed.empty()) {
    std::copy_if(there.begin(), there.end(), std::back_inserter(blamed),
                 [&](TicketId id) { return !flights.at(id).first_byte; });
  }
  for (const TicketId id : blamed) {
    Flight& flight = flights.at(id);
    flight.suspect = true;
    ++flight.crashes;
  }
}

// It answers, but only with failures of its own: a fresh one may do better.
void Pool::State::restart_if_useless(Unit& unit, Instant now) {
  if (!unit.replica.live() || dispatcher.failures_in_a_row(unit.replica.index()) < kUseless) return;
  const std::string reason = "failed " + std::to_string(kUseless) + " requests in a row";
  apply(unit, unit.replica.on_failed(reason, true, random, now), reason, now);
}

// An event may bring the next check nearer, never put it off.
void Pool::State::wake_for(const Unit& unit, Instant now) {
  replicas_due = std::min({replicas_due, unit.replica.next_due(), unit.doubt_until});
  if (unit.replica.live()) replicas_due = std::min(replicas_due, now + kWatch);
  const Instant rest = dispatcher.rest_until(unit.replica.index());
  if (rest > now) replicas_due = std::min(replicas_due, rest);
}

void Pool::State::plan_check(Instant now) {
  replicas_due = Instant::max();
  for (const auto& unit : units) wake_for(*unit, now);
}

void Pool::State::check_replicas(Instant now) {
  replicas_due = Instant::max();
  for (std::size_t i = 0; i < units.size(); ++i) {
    Unit& unit = *units[i];
    const bool drained =
        unit.replica.state() == ReplicaState::Draining && now >= unit.replica.next_due();
    const ReplicaEffects effects = unit.replica.tick(!unit.inside.empty(), random, now);
    if (effects.changed) apply(unit, effects, drained ? "drained" : unit.replica.last_error(), now);
    if (now >= unit.doubt_until) settle_doubts(unit, now);
    settle_drain(unit, now);
  }
  pump_all(now);  // a replica that rested has places again
  plan_check(now);
}

ReplicaIndex Pool::add_replica(NodeId node, Generation generation, Link link, Instant now) {
  State& s = *state_;
  Launch before{static_cast<ReplicaIndex>(s.units.size()), 0};
  if (const std::optional<ReplicaIndex> vacant = s.find_vacant())
    before = {*vacant, s.unit(*vacant).replica.launch().number + 1};
  auto made = std::make_unique<State::Unit>(
      State::Unit{.replica = Replica(before, std::move(node), generation, s.settings.heal),
                  .inside = {},
                  .doubtful = {}});
  const ReplicaIndex index = before.replica;
  const auto at = static_cast<std::size_t>(index);
  if (at == s.units.size())
    s.units.push_back(std::move(made));
  else
    s.units[at] = std::move(made);
  std::erase(s.by_age, index);
  s.by_age.push_back(index);
  s.dispatcher.grow(s.units.size());
  State::Unit& unit = s.unit(index);
  s.apply(unit, unit.replica.begin(link, now), "", now);
  return index;
}

void Pool::drain(ReplicaIndex replica, AfterDrain after, bool force, Instant now) {
  State::Unit& unit = state_->unit(replica);
  state_->apply(unit, unit.replica.drain(after, force, now), "drained", now);
}

void Pool::resume(ReplicaIndex replica, Instant now) {
  State::Unit& unit = state_->unit(replica);
  state_->apply(unit, unit.replica.resume(now), "", now);
}

void Pool::on_loading(Launch launch, std::uint64_t loaded, std::uint64_t total, Instant now) {
  if (State::Unit* unit = state_->find_current(launch)) {
    state_->apply(*unit, unit->replica.on_loading(loaded, total, now), "", now);
  }
}

void Pool::on_ready(Launch launch, ReplicaInfo info, Instant now) {
  if (State::Unit* unit = state_->find_current(launch)) {
    state_->apply(*unit, unit->replica.on_ready(std::move(info), now), "", now);
  }
}

void Pool::on_start_failed(Launch launch, std::string error, Instant now) {
  on_exited(launch, Exit{.reason = std::move(error), .own_fault = false}, now);
}

void Pool::on_exited(Launch launch, const Exit& exit, Instant now) {
  State::Unit* unit = state_->find_current(launch);
  if (unit == nullptr) return;
  state_->blame(*unit, exit);
  const ReplicaEffects effects =
      exit.by_chance ? unit->replica.on_mishap(exit.reason, state_->random, now)
                     : unit->replica.on_failed(exit.reason, false, state_->random, now);
  state_->apply(*unit, effects, exit.reason, now);
}

void Pool::on_heartbeat(Launch launch, const Heartbeat& beat, Instant now) {
  if (State::Unit* unit = state_->find_current(launch)) unit->replica.on_heartbeat(beat, now);
}

void Pool::on_hang(Launch launch, std::string reason, Instant now) {
  State::Unit* unit = state_->find_current(launch);
  if (unit == nullptr) return;
  state_->apply(*unit, unit->replica.on_failed(reason, true, state_->random, now), reason, now);
}

void Pool::on_node_lost(const NodeId& node, std::string reason, Instant now) {
  State& s = *state_;
  for (std::size_t i = 0; i < s.units.size(); ++i) {
    State::Unit& unit = *s.units[i];
    if (unit.replica.node() != node) continue;
    s.apply(unit, unit.replica.on_node_lost(reason, now), "node away: " + reason, now);
  }
}

void Pool::on_node_back(const NodeId& node, Instant now) {
  State& s = *state_;
  for (std::size_t i = 0; i < s.units.size(); ++i) {
    State::Unit& unit = *s.units[i];
    if (unit.replica.node() != node) continue;
    s.apply(unit, unit.replica.on_node_back(now), "", now);
  }
}

Launch Pool::adopt(ReplicaIndex replica, ReplicaInfo info, Instant now) {
  State::Unit& unit = state_->unit(replica);
  state_->apply(unit, unit.replica.adopt(std::move(info), now), "adopted anew", now);
  return unit.replica.launch();
}

}  // namespace flotilla::cluster
