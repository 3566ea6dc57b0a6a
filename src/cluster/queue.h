#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cluster/ticket.h"

namespace flotilla::cluster {

// Where a ticket waits: for any replica, or for one as its home.
enum class Lane : std::uint32_t { Anywhere = 0 };
inline Lane home_lane(ReplicaIndex replica) {
  return static_cast<Lane>(static_cast<std::uint32_t>(replica) + 1);
}

// Waiting tickets, fair among keys: whose counter of charged tokens / weight is lowest is next,
// first in first out within a key and lane. A key that was idle starts at the lowest counter of
// those that wait, so neither rest nor an empty server saves up credit. take() charges the
// estimate; correct() replaces it by what the runner counted.
//
// Bounds are the caller's: size() and bytes(). Keys that owe nothing are forgotten.
class FairQueue {
 public:
  void push(const Ticket& ticket, Lane lane);
  // The next of these lanes; it is charged and gone from the queue.
  std::optional<TicketId> take(std::span<const Lane> lanes);
  // A ticket that never waited is charged too.
  void charge(std::string_view key, double weight, std::uint64_t tokens);
  void correct(std::string_view key, double weight, std::uint64_t charged, std::uint64_t actual);
  // false: not waiting.
  bool remove(TicketId id);
  // To Anywhere, each in its order of arrival.
  void move_to_anywhere(TicketId id);
  void move_all_to_anywhere(Lane lane);
  std::vector<TicketId> clear();

  std::size_t size() const { return waiting_.size(); }
  std::size_t size(Lane lane) const;
  bool empty(Lane lane) const { return size(lane) == 0; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t tokens() const { return tokens_; }
  std::size_t keys() const { return names_.size(); }
  double counter(std::string_view key) const;

 private:
  using KeyIndex = std::uint32_t;
  using Head = std::pair<double, KeyIndex>;  // (counter, key): lowest first
  struct Waiting {
    KeyIndex key = 0;
    Lane lane{};
    std::uint64_t arrival = 0;
    std::uint64_t tokens = 0;
    std::uint64_t bytes = 0;
  };
  struct Line {  // one key's tickets in one lane, by arrival
    Lane lane{};
    std::deque<TicketId> tickets;
  };
  struct Key {
    std::string name;
    double counter = 0;
    double weight = 1;
    std::size_t waiting = 0;
    std::vector<Line> lines;  // none is empty
  };
  struct LaneState {
    std::set<Head> heads;
    std::size_t size = 0;
  };

  KeyIndex key_of(std::string_view name, double weight);
  void insert(KeyIndex key, TicketId id, Waiting& waiting);
  void detach(TicketId id, const Waiting& waiting);
  void set_counter(KeyIndex key, double counter);
  void forget_keys();
  LaneState& lane_state(Lane lane);

  std::unordered_map<TicketId, Waiting> waiting_;
  std::unordered_map<std::string, KeyIndex> names_;
  std::vector<Key> keys_;
  std::vector<KeyIndex> free_keys_;
  std::vector<LaneState> lanes_;
  std::set<Head> active_;  // keys with anything waiting
  double served_ = 0;      // counter of the last key served, before its charge
  std::uint64_t arrivals_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t tokens_ = 0;
  std::size_t forget_at_ = 1024;
};

// Tokens per second that leave, averaged over the last half minute or so: for Retry-After.
class DrainRate {
 public:
  void add(std::uint64_t tokens, Instant now);
  double per_second(Instant now) const;

 private:
  double decayed(Instant now) const;
  double sum_ = 0;
  Instant at_{};
  Instant since_{};
};

}  // namespace flotilla::cluster
