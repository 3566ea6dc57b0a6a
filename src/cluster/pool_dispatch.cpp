#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cluster/pool_state.h"

// Which ticket goes to which replica.
namespace flotilla::cluster {

// As far as re-prefilling costs: what waiting for the home may cost too.
Duration Pool::State::prefill_time(const Unit& home, const Ticket& ticket) const {
  const std::uint64_t tokens = ticket.prompt_tokens > 0 ? ticket.prompt_tokens : ticket.tokens;
  const double seconds = static_cast<double>(tokens) / home.prefill_per_s;
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, 3600.0)));
}

bool Pool::State::worth_waiting(const Unit& home, const Ticket& ticket) const {
  const ReplicaIndex index = home.replica.index();
  const int waiters = static_cast<int>(queue.size(home_lane(index)));
  const int most = settings.affinity.concurrent_max > 0
                       ? settings.affinity.concurrent_max
                       : std::max(16, 2 * home.replica.info().width);
  if (dispatcher.busy(index) + waiters >= most) return false;
  const double wait_s =
      home.service_s * (waiters + 1) / std::max(1, dispatcher.usable_places(index));
  return wait_s < to_s(prefill_time(home, ticket));
}

std::variant<ReplicaIndex, Lane> Pool::State::choose(const Ticket& ticket, Instant now) {
  const std::optional<Launch> home = affinity.find_home(ticket.conversation, now);
  if (home && dispatcher.is_current(*home)) pump_if_waited(home->replica, now);
  if (home && dispatcher.is_current(*home) &&
      dispatcher.admits(home->replica) == Admit::Everybody &&
      unit(home->replica).replica.generation() == serving) {
    if (dispatcher.has_free(home->replica, now)) return home->replica;
    if (worth_waiting(unit(home->replica), ticket)) return home_lane(home->replica);
  }
  const Dispatcher::Wanted wanted{.generation = serving,
                                  .admit = Admit::Everybody,
                                  .except = {},
                                  .tie_break = ticket.conversation.tie_break};
  std::optional<ReplicaIndex> least = dispatcher.least_busy(wanted, now);
  while (least && pump_if_waited(*least, now)) least = dispatcher.least_busy(wanted, now);
  if (!least) return Lane::Anywhere;
  return *least;
}

// A place that came with time alone (a rest is over) belongs to those who wait for it already.
bool Pool::State::pump_if_waited(ReplicaIndex replica, Instant now) {
  if (expiries.empty() || !dispatcher.has_free(replica, now)) return false;
  const std::size_t before = expiries.size();
  pump(replica, now);
  return expiries.size() < before;
}

// Engines that are not ours begin every answer anew: one of which the client has a part is not for
// them.
std::vector<Launch> Pool::State::cannot_go_on(const Flight& flight) const {
  std::vector<Launch> out;
  if (!flight.pinned) return out;
  for (const auto& unit : units)
    if (unit->replica.info().external) out.push_back(unit->replica.launch());
  return out;
}

// For a ticket that lost its replica. A launch that failed it is taken again only when there is no
// other; one that drains only when nobody else can go on in its generation.
std::optional<ReplicaIndex> Pool::State::choose_again(const Flight& flight, Instant now) {
  const std::vector<Launch> never = cannot_go_on(flight);
  std::vector<Launch> except = never;
  except.insert(except.end(), flight.except.begin(), flight.except.end());
  Dispatcher::Wanted wanted{.generation = flight.pinned.value_or(serving),
                            .admit = Admit::Everybody,
                            .except = except,
                            .tie_break = 0};
  if (!dispatcher.any(wanted)) wanted.except = never;
  if (!dispatcher.any(wanted)) wanted.admit = Admit::Resumes;
  return dispatcher.least_busy(wanted, now);
}

const char* to_string(Why why) {
  switch (why) {
    case Why::LeastBusy: return "least busy";
    case Why::Home: return "home of its conversation";
    case Why::GoesOn: return "goes on after a loss";
    case Why::Alone: return "alone, it may have crashed a runner";
  }
  return "";
}

Why Pool::State::why(const Flight& flight, const Unit& to, Instant now) {
  if (flight.suspect) return Why::Alone;
  if (flight.placed_at != Instant{}) return Why::GoesOn;
  const std::optional<Launch> home = affinity.find_home(flight.ticket.conversation, now);
  return home == to.replica.launch() ? Why::Home : Why::LeastBusy;
}

void Pool::State::place(Flight& flight, ReplicaIndex replica, Instant now) {
  Unit& to = unit(replica);
  flight.why = why(flight, to, now);
  dispatcher.reserve(replica, flight.ticket.tokens);
  to.inside.push_back(flight.ticket.id);
  flight.where = Flight::Where::Placed;
  flight.launch = to.replica.launch();
  flight.placed_at = now;
  flight.first_byte = false;
  if (!flight.charged) queue.charge(flight.ticket.key, flight.ticket.weight, flight.ticket.tokens);
  flight.charged = true;
  affinity.settle(flight.ticket.conversation, flight.launch, now);
  drain_rate.add(flight.ticket.tokens, now);
  if (flight.suspect) dispatcher.set_exclusive(replica, true);
  if (to.inside.size() == 1) to.replica.watchdog().work_began(now);
}

void Pool::State::dispatch(Flight& flight, ReplicaIndex replica, Instant now) {
  unqueue(flight);
  place(flight, replica, now);
  actions.push_back(Dispatch{.ticket = flight.ticket.id,
                             .launch = flight.launch,
                             .node = unit(replica).replica.node(),
                             .why = flight.why});
}

// Those that lost their replica, in order. Where one found no place, others of its kind find none.
void Pool::State::place_retries(Instant now) {
  using Kind = std::pair<Generation, bool>;  // and whether it has begun
  std::set<Kind> none;
  for (auto it = retries.begin(); it != retries.end();) {
    Flight& flight = flights.at(*it++);
    const Kind kind{flight.pinned.value_or(serving), flight.pinned.has_value()};
    if (flight.except.empty() && none.contains(kind)) continue;
    if (const std::optional<ReplicaIndex> to = choose_again(flight, now)) {
      dispatch(flight, *to, now);
    } else if (flight.except.empty()) {
      none.insert(kind);
    }
  }
}

// Gives a free place of the replica to who is next in the queue; false: nobody is, or none is free.
bool Pool::State::pump_one(ReplicaIndex replica, Instant now) {
  if (!dispatcher.has_free(replica, now) || dispatcher.admits(replica) != Admit::Everybody ||
      unit(replica).replica.generation() != serving) {
    return false;
  }
  const std::array lanes = {home_lane(replica), Lane::Anywhere};
  const std::optional<TicketId> id = queue.take(lanes);
  if (!id) return false;
  Flight& flight = flights.at(*id);
  flight.charged = true;
  dispatch(flight, replica, now);
  return true;
}

void Pool::State::pump(ReplicaIndex replica, Instant now) {
  if (expiries.empty() && !clearing) return;  // nobody waits
  if (clearing || !suspects.empty()) place_suspects(now);
  if (!retries.empty()) place_retries(now);
  while (pump_one(replica, now)) {
  }
}

void Pool::State::pump_all(Instant now) {
  if (expiries.empty() && !clearing) return;
  if (clearing || !suspects.empty()) place_suspects(now);
  if (!retries.empty()) place_retries(now);
  if (queue.size() == 0) return;
  if (queue.size() > queue.size(Lane::Anywhere)) {
    for (const auto& unit : units) {
      const ReplicaIndex index = unit->replica.index();
      while (!queue.empty(home_lane(index)) && pump_one(index, now)) {
      }
    }
  }
  const Dispatcher::Wanted wanted{.generation = serving};
  while (!queue.empty(Lane::Anywhere)) {
    const std::optional<ReplicaIndex> least = dispatcher.least_busy(wanted, now);
    if (!least || !pump_one(*least, now)) break;
  }
}

// A request that may have crashed its runner is tried alone: in an idle replica, or in the least
// busy one as soon as that is empty. Until it has survived a step nobody joins it.
void Pool::State::place_suspects(Instant now) {
  while (!suspects.empty()) {
    Flight& flight = flights.at(suspects.front());
    const std::vector<Launch> never = cannot_go_on(flight);
    Dispatcher::Wanted wanted{.generation = flight.pinned.value_or(serving)};
    wanted.except = never;
    if (!dispatcher.any(wanted)) wanted.admit = Admit::Resumes;
    // It was chosen for another, who is gone.
    if (clearing && !dispatcher.is_wanted(*clearing, wanted)) stop_clearing();
    if (!clearing) clearing = dispatcher.least_loaded(wanted);
    if (!clearing) return;
    dispatcher.set_exclusive(*clearing, true);
    if (dispatcher.busy(*clearing) > 0 || now < dispatcher.rest_until(*clearing)) return;
    const ReplicaIndex replica = *std::exchange(clearing, std::nullopt);
    dispatch(flight, replica, now);
  }
  if (clearing) stop_clearing();
}

void Pool::State::stop_clearing() {
  dispatcher.set_exclusive(*clearing, false);
  clearing.reset();
}

}  // namespace flotilla::cluster
