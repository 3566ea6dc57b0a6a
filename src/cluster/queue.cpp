#include "cluster/queue.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace flotilla::cluster {

namespace {
constexpr std::size_t kIdleKeysMax = 4096;
}

FairQueue::LaneState& FairQueue::lane_state(Lane lane) {
  const auto index = static_cast<std::size_t>(lane);
  if (index >= lanes_.size()) lanes_.resize(index + 1);
  return lanes_[index];
}

std::size_t FairQueue::size(Lane lane) const {
  const auto index = static_cast<std::size_t>(lane);
  return index < lanes_.size() ? lanes_[index].size : 0;
}

double FairQueue::counter(std::string_view key) const {
  const auto found = names_.find(std::string(key));
  return found == names_.end() ? served_ : keys_[found->second].counter;
}

// Finds or makes the key; one that does not wait is lifted to where the others are.
FairQueue::KeyIndex FairQueue::key_of(std::string_view name, double weight) {
  CHECK(weight > 0);
  const double floor = active_.empty() ? served_ : active_.begin()->first;
  const auto [found, added] = names_.try_emplace(std::string(name), 0);
  if (added) {
    if (free_keys_.empty()) {
      found->second = static_cast<KeyIndex>(keys_.size());
      keys_.emplace_back();
    } else {
      found->second = free_keys_.back();
      free_keys_.pop_back();
    }
    keys_[found->second].name = found->first;
    keys_[found->second].counter = floor;
  }
  Key& key = keys_[found->second];
  key.weight = weight;
  if (key.waiting == 0) key.counter = std::max(key.counter, floor);
  return found->second;
}

void FairQueue::push(const Ticket& ticket, Lane lane) {
  if (names_.size() >= forget_at_) forget_keys();
  const KeyIndex key = key_of(ticket.key, ticket.weight);
  const auto [found, added] = waiting_.try_emplace(ticket.id);
  CHECK(added);
  found->second = {.key = key,
                   .lane = lane,
                   .arrival = ++arrivals_,
                   .tokens = ticket.tokens,
                   .bytes = ticket.bytes};
  bytes_ += ticket.bytes;
  tokens_ += ticket.tokens;
  insert(key, ticket.id, found->second);
}

void FairQueue::insert(KeyIndex index, TicketId id, Waiting& waiting) {
  Key& key = keys_[index];
  LaneState& lane = lane_state(waiting.lane);
  if (key.waiting++ == 0) active_.insert({key.counter, index});
  ++lane.size;
  auto line = std::find_if(key.lines.begin(), key.lines.end(),
                           [&](const Line& l) { return l.lane == waiting.lane; });
  if (line == key.lines.end()) {
    lane.heads.insert({key.counter, index});
    key.lines.push_back({.lane = waiting.lane, .tickets = {}});
    line = key.lines.end() - 1;
  }
  auto at = line->tickets.end();  // nearly always: only moved tickets go in between
  while (at != line->tickets.begin() && waiting_.at(*(at - 1)).arrival > waiting.arrival) --at;
  line->tickets.insert(at, id);
}

// Out of its line; still in waiting_.
void FairQueue::detach(TicketId id, const Waiting& waiting) {
  Key& key = keys_[waiting.key];
  LaneState& lane = lane_state(waiting.lane);
  const auto line = std::find_if(key.lines.begin(), key.lines.end(),
                                 [&](const Line& l) { return l.lane == waiting.lane; });
  CHECK(line != key.lines.end());
  if (line->tickets.front() == id) {
    line->tickets.pop_front();
  } else {
    line->tickets.erase(std::find(line->tickets.begin(), line->tickets.end(), id));
  }
  --lane.size;
  if (line->tickets.empty()) {
    lane.heads.erase({key.counter, waiting.key});
    *line = std::move(key.lines.back());
    key.lines.pop_back();
  }
  if (--key.waiting == 0) active_.erase({key.counter, waiting.key});
}

void FairQueue::set_counter(KeyIndex index, double counter) {
  Key& key = keys_[index];
  if (key.waiting > 0) {
    active_.erase({key.counter, index});
    active_.insert({counter, index});
  }
  for (const Line& line : key.lines) {
    LaneState& lane = lane_state(line.lane);
    lane.heads.erase({key.counter, index});
    lane.heads.insert({counter, index});
  }
  key.counter = counter;
}

std::optional<TicketId> FairQueue::take(std::span<const Lane> lanes) {
  std::optional<Head> best;
  TicketId id{};
  std::uint64_t arrival = 0;
  for (const Lane lane : lanes) {
    if (empty(lane)) continue;
    const Head head = *lane_state(lane).heads.begin();
    const Key& key = keys_[head.second];
    const auto line = std::find_if(key.lines.begin(), key.lines.end(),
                                   [&](const Line& l) { return l.lane == lane; });
    const TicketId first = line->tickets.front();
    const std::uint64_t came = waiting_.at(first).arrival;
    // Equal, or the same key in two lanes: by arrival.
    if (best && (best->first < head.first || (best->first == head.first && arrival < came)))
      continue;
    best = head;
    id = first;
    arrival = came;
  }
  if (!best) return std::nullopt;
  const std::uint64_t tokens = waiting_.at(id).tokens;
  served_ = std::max(served_, active_.begin()->first);
  remove(id);
  const Key& key = keys_[best->second];
  set_counter(best->second, key.counter + static_cast<double>(tokens) / key.weight);
  return id;
}

void FairQueue::charge(std::string_view name, double weight, std::uint64_t tokens) {
  if (names_.size() >= forget_at_) forget_keys();
  const KeyIndex index = key_of(name, weight);
  const Key& key = keys_[index];
  served_ = std::max(served_, active_.empty() ? key.counter : active_.begin()->first);
  set_counter(index, key.counter + static_cast<double>(tokens) / weight);
}

void FairQueue::correct(std::string_view name, double weight, std::uint64_t charged,
                        std::uint64_t actual) {
  const auto found = names_.find(std::string(name));
  if (found == names_.end()) return;  // forgotten: it owed nothing
  const double by = (static_cast<double>(actual) - static_cast<double>(charged)) / weight;
  set_counter(found->second, std::max(0.0, keys_[found->second].counter + by));
}

bool FairQueue::remove(TicketId id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return false;
  detach(id, found->second);
  bytes_ -= found->second.bytes;
  tokens_ -= found->second.tokens;
  waiting_.erase(found);
  return true;
}

void FairQueue::move_to_anywhere(TicketId id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end() || found->second.lane == Lane::Anywhere) return;
  detach(id, found->second);
  found->second.lane = Lane::Anywhere;
  insert(found->second.key, id, found->second);
}

void FairQueue::move_all_to_anywhere(Lane lane) {
  std::vector<TicketId> ids;
  for (const Head& head : lane_state(lane).heads) {
    for (const Line& line : keys_[head.second].lines) {
      if (line.lane == lane) ids.insert(ids.end(), line.tickets.begin(), line.tickets.end());
    }
  }
  for (const TicketId id : ids) move_to_anywhere(id);
}

std::vector<TicketId> FairQueue::clear() {
  std::vector<std::pair<std::uint64_t, TicketId>> order;
  for (const auto& [id, waiting] : waiting_) order.emplace_back(waiting.arrival, id);
  std::sort(order.begin(), order.end());
  std::vector<TicketId> ids;
  for (const auto& [arrival, id] : order) {
    remove(id);
    ids.push_back(id);
  }
  return ids;
}

// A key that does not wait and is not ahead of the others would start where it is anyway. With very
// many keys the bound is worth more than what the idle ones owe.
void FairQueue::forget_keys() {
  double floor = active_.empty() ? served_ : std::min(served_, active_.begin()->first);
  for (int pass = 0; pass < 2; ++pass) {
    for (auto it = names_.begin(); it != names_.end();) {
      Key& key = keys_[it->second];
      if (key.waiting == 0 && key.counter <= floor) {
        key = Key{};
        free_keys_.push_back(it->second);
        it = names_.erase(it);
      } else {
        ++it;
      }
    }
    if (names_.size() < kIdleKeysMax) break;
    floor = std::numeric_limits<double>::infinity();
  }
  forget_at_ = std::max<std::size_t>(1024, names_.size() * 2);
}

namespace {
constexpr double kWindowS = 30;
}

double DrainRate::decayed(Instant now) const {
  return sum_ * std::exp(-std::max(0.0, to_s(now - at_)) / kWindowS);
}

void DrainRate::add(std::uint64_t tokens, Instant now) {
  if (sum_ == 0) since_ = now;
  sum_ = decayed(now) + static_cast<double>(tokens);
  at_ = now;
}

double DrainRate::per_second(Instant now) const {
  if (sum_ == 0) return 0;
  // In its first seconds the window is not full yet.
  const double age = std::max(1.0, to_s(now - since_));
  return decayed(now) / (kWindowS * (1 - std::exp(-age / kWindowS)));
}

}  // namespace flotilla::cluster
