#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "cluster/ticket.h"

namespace flotilla::cluster {

// Who may be sent to a replica.
enum class Admit : std::uint8_t {
  Nobody,
  Resumes,  // draining: only what has to go on in its generation
  Everybody,
};

// The places of a pool's replicas, and which replica is next.
//
// A place is taken by reserve() and given back by release() or lose(), never in between; busy never
// exceeds the places. A replica that came back or failed at once has fewer places (1, 2, 4 ... with
// each success); one that keeps failing also rests for a moment, so that failing fast attracts
// nothing.
class Dispatcher {
 public:
  struct Wanted {
    std::optional<Generation> generation = {};  // nothing: any
    Admit admit = Admit::Everybody;             // what the replica must at least be open to
    std::span<const Launch> except = {};
    std::uint64_t tie_break = 0;
  };

  // The replica serves its next launch, empty. `slow`: it starts with one place.
  void open(Launch launch, Generation generation, int places, bool slow);
  void admit(ReplicaIndex replica, Admit whom);
  // The launch is over; what was in it holds no place any more.
  void lose(ReplicaIndex replica);

  // Fewest busy with a free place; then fewest outstanding tokens (or the tie break's choice), then
  // round robin.
  std::optional<ReplicaIndex> least_busy(const Wanted& wanted, Instant now);
  // Is there a replica of that kind at all, free or not?
  bool any(const Wanted& wanted) const;
  // Is it of that kind?
  bool is_wanted(ReplicaIndex replica, const Wanted& wanted) const {
    return fits(at(replica), static_cast<std::size_t>(replica), wanted);
  }
  // Fewest busy of those that are not exclusive, with or without a free place.
  std::optional<ReplicaIndex> least_loaded(const Wanted& wanted) const;

  void reserve(ReplicaIndex replica, std::uint64_t tokens);
  void release(ReplicaIndex replica, std::uint64_t tokens, Outcome outcome, Instant now);
  // It answers: twice the places, up to all.
  void trust(ReplicaIndex replica);
  // One request alone: while set, the replica has no free place for others.
  void set_exclusive(ReplicaIndex replica, bool exclusive);

  bool has_free(ReplicaIndex replica, Instant now) const;
  Admit admits(ReplicaIndex replica) const { return at(replica).admit; }
  bool is_current(Launch launch) const;
  int busy(ReplicaIndex replica) const { return at(replica).busy; }
  int places(ReplicaIndex replica) const { return at(replica).places; }
  int usable_places(ReplicaIndex replica) const;  // slow start included
  std::uint32_t failures_in_a_row(ReplicaIndex replica) const { return at(replica).failures; }
  // When a resting replica has places again.
  Instant rest_until(ReplicaIndex replica) const { return at(replica).rest_until; }
  void grow(std::size_t replicas);

 private:
  struct Entry {
    int busy = 0;
    int limit = 0;   // slow start; <= places
    int places = 0;  // width + ahead
    Admit admit = Admit::Nobody;
    bool exclusive = false;
    Generation generation{};
    std::uint32_t launch = 0;
    std::uint32_t failures = 0;  // in a row
    std::uint64_t tokens = 0;    // outstanding
    Instant rest_until{};
  };
  Entry& at(ReplicaIndex replica) { return entries_[static_cast<std::size_t>(replica)]; }
  const Entry& at(ReplicaIndex replica) const {
    return entries_[static_cast<std::size_t>(replica)];
  }
  static bool free(const Entry& entry, Instant now) {
    return entry.admit != Admit::Nobody && entry.busy < entry.limit && !entry.exclusive &&
           now >= entry.rest_until;
  }
  static bool fits(const Entry& entry, std::size_t index, const Wanted& wanted);

  std::vector<Entry> entries_;
  std::size_t cursor_ = 0;  // where the last choice was
};

}  // namespace flotilla::cluster
