#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "cluster/pool_state.h"

// A ticket's way: admission, the end, the way back after a failure.
namespace flotilla::cluster {

namespace {
constexpr int kRetryAfterMax = 300;
// Failures of one request by runners that live on. With the rests of a failing replica these take
// seconds, in which a dying runner has been seen to be dead.
constexpr std::uint8_t kFailuresMax = 8;
constexpr double kSmooth = 0.2;
// How long news of a process's end may be behind that of its sockets.
constexpr Duration kDoubt = std::chrono::milliseconds(100);

void blend(double& mean, double sample) {
  mean = mean == 0 ? sample : mean + kSmooth * (sample - mean);
}
}  // namespace

int Pool::State::retry_after(Instant now) const {
  double seconds = 1;
  if (live > 0) {
    const double rate = drain_rate.per_second(now);
    if (rate > 0) seconds = static_cast<double>(queue.tokens()) / rate;
  } else {
    Instant soonest = Instant::max();
    for (const auto& unit : units) soonest = std::min(soonest, unit->replica.expected(now));
    seconds = soonest == Instant::max() ? kRetryAfterMax : to_s(soonest - now);
  }
  return static_cast<int>(std::clamp(std::ceil(seconds), 1.0, double{kRetryAfterMax}));
}

// Why a ticket that finds no place may not even wait.
std::optional<Error> Pool::State::refuse(const Ticket& ticket, Instant now) const {
  const bool full = queue.size() >= settings.queue.tickets_max ||
                    queue.bytes() + ticket.bytes > settings.queue.bytes_max;
  if (full) {
    return Error{.code = live > 0 ? Code::ResourceExhausted : Code::Unavailable,
                 .message = fmt::format("the queue of {} is full: {} requests wait in {} bytes",
                                        alias.str(), queue.size(), queue.bytes()),
                 .param = {},
                 .reason = "queue_full",
                 .retry_after_s = retry_after(now)};
  }
  if (live > 0) return std::nullopt;
  const Instant until = std::min(ticket.deadline, now + settings.queue.age_max);
  for (const auto& unit : units) {
    if (unit->replica.expected(now) < until) return std::nullopt;
  }
  return Error{
      .code = Code::Unavailable,
      .message = fmt::format("no replica of {} is live and none is due in time", alias.str()),
      .param = {},
      .reason = "no_live_replica",
      .retry_after_s = retry_after(now)};
}

Error Pool::State::waited_out(const Flight& flight, Instant now) const {
  if (flight.ticket.own_timeout && flight.ticket.deadline <= now) {
    return Error{.code = Code::DeadlineExceeded,
                 .message = "the request's own timeout passed while it waited",
                 .param = {},
                 .reason = "timeout"};
  }
  return Error{.code = live > 0 ? Code::ResourceExhausted : Code::Unavailable,
               .message = live > 0
                              ? fmt::format("{} is busy: no place became free in time", alias.str())
                              : fmt::format("no replica of {} came up in time", alias.str()),
               .param = {},
               .reason = "queue_timeout",
               .retry_after_s = retry_after(now)};
}

void Pool::State::enqueue(Flight& flight, Lane lane, Instant now) {
  flight.where = Flight::Where::Waiting;
  flight.expires = std::min(flight.ticket.deadline, now + settings.queue.age_max);
  expiries.emplace(flight.expires, flight.ticket.id);
  if (lane != Lane::Anywhere) {
    Unit& home = *units[static_cast<std::size_t>(lane) - 1];
    flight.launch = home.replica.launch();
    flight.home_until = now + prefill_time(home, flight.ticket);
    home_limits.emplace(flight.home_until, flight.ticket.id);
  }
  queue.push(flight.ticket, lane);
}

// Back in line after a failure, before everybody who has not been served yet.
void Pool::State::requeue(Flight& flight) {
  flight.where = flight.suspect ? Flight::Where::Suspect : Flight::Where::Retrying;
  (flight.suspect ? suspects : retries).push_back(flight.ticket.id);
}

// A connection broke, or answered with an error, and the node has not said why. If the runner died,
// the news is a moment behind, and with it whether this request may have been the cause.
void Pool::State::doubt(Flight& flight, Instant now) {
  Unit& from = unit(flight.launch.replica);
  flight.where = Flight::Where::Doubtful;
  if (from.doubtful.empty()) from.doubt_until = now + kDoubt;
  from.doubtful.push_back(flight.ticket.id);
  ++doubts;
  replicas_due = std::min(replicas_due, from.doubt_until);
}

void Pool::State::settle_doubts(Unit& unit, Instant now) {
  const bool lives = unit.replica.live();
  unit.doubt_until = Instant::max();
  for (const TicketId id : std::exchange(unit.doubtful, {})) {
    Flight& flight = flights.at(id);
    --doubts;
    if (lives) {
      ++flight.failures;
      flight.except.push_back(flight.launch);
    }
    requeue(flight);
    if (std::optional<Error> error = no_more(flight, flight.expires, now)) {
      actions.push_back(Refuse{.ticket = id, .error = *std::move(error)});
      end(id);
    }
  }
}

// Out of whatever line it waits in.
void Pool::State::unqueue(Flight& flight) {
  const TicketId id = flight.ticket.id;
  expiries.erase({flight.expires, id});
  switch (flight.where) {
    case Flight::Where::Waiting:
      queue.remove(id);
      if (flight.home_until != Instant::max()) home_limits.erase({flight.home_until, id});
      flight.home_until = Instant::max();
      break;
    case Flight::Where::Doubtful:
      std::erase(unit(flight.launch.replica).doubtful, id);
      --doubts;
      break;
    case Flight::Where::Retrying: retries.remove(id); break;
    case Flight::Where::Suspect: suspects.remove(id); break;
    case Flight::Where::Placed:
    case Flight::Where::Lost: break;
  }
}

void Pool::State::leave(Flight& flight, Outcome outcome, Instant now) {
  if (flight.where == Flight::Where::Lost) {
    --lost;
    return;
  }
  const ReplicaIndex replica = flight.launch.replica;
  Unit& from = unit(replica);
  const auto it = std::find(from.inside.begin(), from.inside.end(), flight.ticket.id);
  CHECK(it != from.inside.end());
  *it = from.inside.back();
  from.inside.pop_back();
  dispatcher.release(replica, flight.ticket.tokens, outcome, now);
  if (flight.suspect) dispatcher.set_exclusive(replica, clearing == replica);
  wake_for(from, now);
}

void Pool::State::learn(const Flight& flight, const Usage& usage, Instant now) {
  if (usage.prompt_tokens == 0) {
    // Nobody counted the prompt (an engine counts none, or its client left before): it stays
    // charged as it came, and what was made is added.
    queue.correct(flight.ticket.key, flight.ticket.weight, 0, usage.completion_tokens);
    return;
  }
  const std::uint64_t fresh =
      usage.prompt_tokens - std::min(usage.prompt_tokens, usage.cached_tokens);
  queue.correct(flight.ticket.key, flight.ticket.weight, flight.ticket.tokens,
                fresh + usage.completion_tokens);
  affinity.note_tokens(flight.ticket.conversation, usage.prompt_tokens + usage.completion_tokens);
  if (flight.where != Flight::Where::Placed) return;
  Unit& from = unit(flight.launch.replica);
  blend(from.service_s, to_s(now - flight.placed_at));
  // Shorter ones measure the step rather than the rate.
  if (fresh >= 32 && usage.prompt_time > Duration::zero()) {
    const double rate = static_cast<double>(fresh) / to_s(usage.prompt_time);
    from.prefill_per_s += kSmooth * (rate - from.prefill_per_s);
  }
}

void Pool::State::end(TicketId id) {
  const auto found = flights.find(id);
  unqueue(found->second);
  flights.erase(found);
}

// Those that can only go on in a generation of which nobody is left.
void Pool::State::refuse_stranded(Instant now) {
  std::vector<TicketId> waiting(retries.begin(), retries.end());
  waiting.insert(waiting.end(), suspects.begin(), suspects.end());
  for (const TicketId id : waiting) {
    const Flight& flight = flights.at(id);
    if (std::optional<Error> error = no_more(flight, flight.expires, now)) {
      actions.push_back(Refuse{.ticket = id, .error = *std::move(error)});
      end(id);
    }
  }
}

void Pool::State::check_queue(Instant now) {
  while (!expiries.empty() && expiries.begin()->first <= now) {
    const TicketId id = expiries.begin()->second;
    actions.push_back(Refuse{.ticket = id, .error = waited_out(flights.at(id), now)});
    end(id);
  }
  bool moved = false;
  while (!home_limits.empty() && home_limits.begin()->first <= now) {
    const TicketId id = home_limits.begin()->second;
    home_limits.erase(home_limits.begin());
    flights.at(id).home_until = Instant::max();
    queue.move_to_anywhere(id);
    moved = true;
  }
  if (moved || clearing) pump_all(now);
}

std::size_t Pool::State::placed() const { return flights.size() - expiries.size() - lost; }

Admission Pool::submit(Ticket ticket, Instant now) {
  State& s = *state_;
  if (s.closed) return Refused{*s.closed};
  ticket.tokens = std::max<std::uint64_t>(1, ticket.tokens);
  const auto [found, added] = s.flights.try_emplace(ticket.id);
  CHECK(added);
  State::Flight& flight = found->second;
  flight.ticket = std::move(ticket);
  const auto choice = s.choose(flight.ticket, now);
  if (const auto* replica = std::get_if<ReplicaIndex>(&choice)) {
    s.place(flight, *replica, now);
    return Dispatched{
        .launch = flight.launch, .node = s.unit(*replica).replica.node(), .why = flight.why};
  }
  std::optional<Error> error = s.refuse(flight.ticket, now);
  if (!error && flight.ticket.deadline <= now) error = s.waited_out(flight, now);
  if (error) {
    s.flights.erase(found);
    return Refused{*std::move(error)};
  }
  s.enqueue(flight, std::get<Lane>(choice), now);
  return Queued{};
}

void Pool::first_byte(TicketId id, Instant now) {
  State& s = *state_;
  const auto found = s.flights.find(id);
  if (found == s.flights.end() || found->second.where != State::Flight::Where::Placed) return;
  State::Flight& flight = found->second;
  if (flight.first_byte) return;
  flight.first_byte = true;
  flight.crashes = flight.named_crashes;  // it survived a step: the crash was another's
  if (flight.suspect) s.dispatcher.set_exclusive(flight.launch.replica, false);
  flight.suspect = false;
  s.dispatcher.trust(flight.launch.replica);
  s.pump(flight.launch.replica, now);
}

void Pool::release(TicketId id, Outcome outcome, const Usage& usage, Instant now) {
  State& s = *state_;
  const auto found = s.flights.find(id);
  if (found == s.flights.end()) return;
  State::Flight& flight = found->second;
  const bool waits =
      flight.where != State::Flight::Where::Placed && flight.where != State::Flight::Where::Lost;
  if (waits) {
    s.end(id);
    if (s.clearing) s.pump_all(now);
    return;
  }
  const bool placed = flight.where == State::Flight::Where::Placed;
  const ReplicaIndex replica = flight.launch.replica;
  s.learn(flight, usage, now);
  s.leave(flight, outcome, now);
  s.end(id);
  if (!placed) return;
  State::Unit& unit = s.unit(replica);
  s.restart_if_useless(unit, now);
  s.pump(replica, now);
  s.settle_drain(unit, now);
}

void Pool::cancel(TicketId id, Instant now) { release(id, Outcome::Cancelled, {}, now); }

// Why a ticket that lost its replica ends here.
std::optional<Error> Pool::State::no_more(const Flight& flight, Instant deadline,
                                          Instant now) const {
  if (flight.crashes >= 2 || flight.named_crashes >= 2) {
    return Error{.code = Code::Internal,
                 .message = "this request crashed two runners",
                 .param = {},
                 .reason = "poison"};
  }
  if (flight.failures >= kFailuresMax) {
    return Error{
        .code = Code::Unavailable,
        .message = fmt::format("{} replicas failed to answer this request", flight.failures),
        .param = {},
        .reason = "replicas_failed",
        .retry_after_s = retry_after(now)};
  }
  if (deadline <= now) return waited_out(flight, now);
  const bool some = std::any_of(units.begin(), units.end(), [&](const auto& unit) {
    return unit->replica.state() != ReplicaState::Stopped &&
           (!flight.pinned ||
            (unit->replica.generation() == *flight.pinned && !unit->replica.info().external)) &&
           (unit->replica.live() || !closed);
  });
  if (some) return std::nullopt;
  if (closed) return closed;
  return Error{
      .code = Code::Unavailable,
      .message = fmt::format("no replica of {} is left to go on with this request", alias.str()),
      .param = {},
      .reason = "no_live_replica",
      .retry_after_s = retry_after(now)};
}

Admission Pool::retry(TicketId id, Outcome outcome, Instant deadline, Instant now) {
  State& s = *state_;
  const auto found = s.flights.find(id);
  CHECK(found != s.flights.end());
  State::Flight& flight = found->second;
  CHECK(flight.where == State::Flight::Where::Placed || flight.where == State::Flight::Where::Lost);
  const ReplicaIndex replica = flight.launch.replica;
  const bool lives = flight.where == State::Flight::Where::Placed;
  if (outcome == Outcome::LostAfterFirstByte) {
    flight.pinned = s.unit(replica).replica.generation();
    flight.ticket.deadline = deadline;
  }
  s.leave(flight, outcome, now);
  flight.expires = deadline;
  std::optional<Error> error = s.no_more(flight, deadline, now);
  std::optional<ReplicaIndex> to;
  if (error) {
    s.flights.erase(found);
  } else if (lives || flight.suspect) {
    s.expiries.emplace(deadline, id);
    lives ? s.doubt(flight, now) : s.requeue(flight);
  } else if ((to = s.choose_again(flight, now))) {
    s.place(flight, *to, now);
  } else {
    s.expiries.emplace(deadline, id);
    s.requeue(flight);
  }
  const Launch launch = to ? s.unit(*to).replica.launch() : Launch{};
  const NodeId node = to ? s.unit(*to).replica.node() : NodeId{};
  const Why why = to ? flight.why : Why::LeastBusy;
  s.restart_if_useless(s.unit(replica), now);
  s.pump(replica, now);
  s.settle_drain(s.unit(replica), now);
  if (error) return Refused{*std::move(error)};
  if (to) return Dispatched{.launch = launch, .node = node, .why = why};
  return Queued{};
}

}  // namespace flotilla::cluster
