#include "cluster/pool.h"

#include <algorithm>
#include <utility>

#include "cluster/pool_state.h"

namespace flotilla::cluster {

namespace {
// A tick that comes later than this means that the gateway itself stood still.
constexpr Duration kLate = std::chrono::seconds(1);
}  // namespace

Pool::Pool(Alias alias, PoolSettings settings, Random& random)
    : state_(std::make_unique<State>(std::move(alias), settings, random)) {}

Pool::~Pool() = default;

void Pool::configure(PoolSettings settings, Instant now) {
  State& s = *state_;
  s.settings = settings;
  s.affinity.configure(settings.affinity);
  for (const auto& unit : s.units) unit->replica.configure(settings.heal);
  s.plan_check(now);
}

void Pool::close(Error error, bool force, Instant now) {
  State& s = *state_;
  s.closed = std::move(error);
  std::vector<TicketId> waiting;
  for (const auto& [expiry, id] : s.expiries) waiting.push_back(id);
  for (const TicketId id : waiting) {
    s.actions.push_back(Refuse{.ticket = id, .error = *s.closed});
    s.end(id);
  }
  for (const auto& unit : s.units) drain(unit->replica.index(), AfterDrain::Remove, force, now);
}

bool Pool::closed() const { return state_->closed.has_value(); }

bool Pool::stopped() const {
  return std::all_of(state_->units.begin(), state_->units.end(), [](const auto& unit) {
    return unit->replica.state() == ReplicaState::Stopped;
  });
}

void Pool::tick(Instant now) {
  State& s = *state_;
  const Instant due = next_deadline();
  if (due != Instant::max() && now - due > kLate) {
    for (const auto& unit : s.units) unit->replica.watchdog().forgive(now - due);
  }
  if (now >= s.replicas_due) s.check_replicas(now);
  s.check_queue(now);
}

Instant Pool::next_deadline() const {
  const State& s = *state_;
  Instant due = s.replicas_due;
  if (!s.expiries.empty()) due = std::min(due, s.expiries.begin()->first);
  if (!s.home_limits.empty()) due = std::min(due, s.home_limits.begin()->first);
  return due;
}

std::vector<Action> Pool::take_actions() { return std::exchange(state_->actions, {}); }

const Alias& Pool::alias() const { return state_->alias; }
std::uint64_t Pool::version() const { return state_->version; }
int Pool::live_count() const { return state_->live; }
std::size_t Pool::queue_depth() const { return state_->expiries.size(); }
std::size_t Pool::in_flight() const { return state_->placed(); }

PoolStatus Pool::snapshot(Instant now) const {
  const State& s = *state_;
  PoolStatus out;
  out.alias = s.alias;
  out.generation = s.serving;
  out.queue_depth = queue_depth();
  out.in_flight = in_flight();
  out.exact_resume = s.live > 0;
  const std::string* numerics = nullptr;
  for (const ReplicaIndex index : s.by_age) {
    const State::Unit& unit = s.unit(index);
    ReplicaStatus status = unit.replica.status(now);
    status.busy_count = s.dispatcher.busy(status.index);
    const bool rests = now < s.dispatcher.rest_until(status.index);
    status.places = rests ? 0 : s.dispatcher.usable_places(status.index);
    status.queued = static_cast<int>(s.queue.size(home_lane(status.index)));
    if (status.state == ReplicaState::Stopped) continue;
    ++out.replicas_total;
    out.tokens_per_s += status.tokens_per_s;
    if (status.live) {
      ++out.replicas_live;
      const ReplicaInfo& info = unit.replica.info();
      if (numerics == nullptr) numerics = &info.numerics;
      if (!info.exact_resume || info.numerics != *numerics) out.exact_resume = false;
    }
    out.replicas.push_back(std::move(status));
  }
  return out;
}

std::vector<SessionStatus> Pool::sessions(std::size_t most, Instant now) const {
  std::vector<SessionStatus> out;
  for (const AffinityTable::Conversation& one : state_->affinity.list(most)) {
    if (!state_->dispatcher.is_current(one.home)) continue;
    out.push_back({.id = one.key,
                   .node = state_->unit(one.home.replica).replica.node(),
                   .idle = now - one.used,
                   .tokens = one.tokens,
                   .named = one.named});
  }
  return out;
}

bool Pool::forget_session(std::uint64_t id) {
  const std::size_t before = state_->affinity.size();
  state_->affinity.forget(id);
  return state_->affinity.size() < before;
}

}  // namespace flotilla::cluster
