#include "cluster/dispatch.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "cluster/affinity.h"

namespace flotilla::cluster {

namespace {
constexpr Duration kRest = std::chrono::milliseconds(50);  // after the first failure, doubling
constexpr std::uint32_t kRestDoublings = 6;                // 3.2 s at most
}  // namespace

void Dispatcher::grow(std::size_t replicas) {
  if (entries_.size() < replicas) entries_.resize(replicas);
}

void Dispatcher::open(Launch launch, Generation generation, int places, bool slow) {
  CHECK(places > 0);
  Entry& entry = at(launch.replica);
  entry = Entry{};
  entry.launch = launch.number;
  entry.generation = generation;
  entry.places = places;
  entry.limit = slow ? 1 : places;
  entry.admit = Admit::Everybody;
}

void Dispatcher::admit(ReplicaIndex replica, Admit whom) { at(replica).admit = whom; }

void Dispatcher::lose(ReplicaIndex replica) {
  Entry& entry = at(replica);
  entry.admit = Admit::Nobody;
  entry.busy = 0;
  entry.tokens = 0;
  entry.launch = 0;
  entry.exclusive = false;
}

bool Dispatcher::fits(const Entry& entry, std::size_t index, const Wanted& wanted) {
  if (entry.admit < wanted.admit || entry.admit == Admit::Nobody) return false;
  if (wanted.generation && *wanted.generation != entry.generation) return false;
  const Launch launch{static_cast<ReplicaIndex>(index), entry.launch};
  return std::find(wanted.except.begin(), wanted.except.end(), launch) == wanted.except.end();
}

std::optional<ReplicaIndex> Dispatcher::least_busy(const Wanted& wanted, Instant now) {
  const std::size_t count = entries_.size();
  std::optional<std::size_t> best;
  for (std::size_t step = 1; step <= count; ++step) {
    std::size_t i = cursor_ + step;
    if (i >= count) i -= count;
    const Entry& entry = entries_[i];
    if (best && entry.busy > entries_[*best].busy) continue;
    if (!free(entry, now) || !fits(entry, i, wanted)) continue;
    if (!best || entry.busy < entries_[*best].busy) {
      best = i;
    } else if (wanted.tie_break != 0 ? mix(wanted.tie_break + i) > mix(wanted.tie_break + *best)
                                     : entry.tokens < entries_[*best].tokens) {
      best = i;
    }
  }
  if (!best) return std::nullopt;
  cursor_ = *best;
  return static_cast<ReplicaIndex>(*best);
}

bool Dispatcher::any(const Wanted& wanted) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (fits(entries_[i], i, wanted)) return true;
  }
  return false;
}

std::optional<ReplicaIndex> Dispatcher::least_loaded(const Wanted& wanted) const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!fits(entries_[i], i, wanted) || entries_[i].exclusive) continue;
    if (!best || entries_[i].busy < entries_[*best].busy) best = i;
  }
  if (!best) return std::nullopt;
  return static_cast<ReplicaIndex>(*best);
}

void Dispatcher::reserve(ReplicaIndex replica, std::uint64_t tokens) {
  Entry& entry = at(replica);
  CHECK(entry.admit != Admit::Nobody && entry.busy < entry.places);
  ++entry.busy;
  entry.tokens += tokens;
}

void Dispatcher::release(ReplicaIndex replica, std::uint64_t tokens, Outcome outcome, Instant now) {
  Entry& entry = at(replica);
  CHECK(entry.busy > 0 && entry.tokens >= tokens);
  --entry.busy;
  entry.tokens -= tokens;
  switch (outcome) {
    case Outcome::Completed:
      entry.failures = 0;
      entry.rest_until = Instant{};
      trust(replica);
      break;
    case Outcome::FailedBeforeFirstByte:
    case Outcome::LostAfterFirstByte:
      entry.limit = 1;
      if (now < entry.rest_until)
        break;  // of the same moment: one connection's end is many requests'
      entry.rest_until = now + kRest * (1U << std::min(entry.failures, kRestDoublings));
      ++entry.failures;
      break;
    case Outcome::RequestFault:
    case Outcome::Cancelled: break;  // says nothing about the replica
  }
}

void Dispatcher::trust(ReplicaIndex replica) {
  Entry& entry = at(replica);
  entry.limit = std::min(entry.places, entry.limit * 2);
}

void Dispatcher::set_exclusive(ReplicaIndex replica, bool exclusive) {
  at(replica).exclusive = exclusive;
}

bool Dispatcher::has_free(ReplicaIndex replica, Instant now) const {
  return free(at(replica), now);
}

bool Dispatcher::is_current(Launch launch) const {
  const auto index = static_cast<std::size_t>(launch.replica);
  return index < entries_.size() && entries_[index].admit != Admit::Nobody &&
         entries_[index].launch == launch.number;
}

int Dispatcher::usable_places(ReplicaIndex replica) const {
  const Entry& entry = at(replica);
  return entry.admit == Admit::Nobody ? 0 : entry.limit;
}

}  // namespace flotilla::cluster
