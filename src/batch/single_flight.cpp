#include "batch/single_flight.h"

#include <algorithm>
#include <utility>

namespace flotilla::batch {

bool SingleFlight::follow(Newcomer& newcomer, int reusable) {
  const auto size = static_cast<int>(newcomer.tokens.size());
  if (size <= kTokensMin) return false;
  Leaders::Key key{newcomer.group, std::move(newcomer.tokens)};
  const auto found = leaders_.find_longest(key);
  newcomer.tokens = std::move(key.second);
  // The last token is computed in any case.
  const int shared = std::min(static_cast<int>(found.shared), size - 1);
  if (found.entry == leaders_.end() || shared - reusable < kTokensMin) return false;
  const auto leader_size = static_cast<int>(found.entry->first.second.size());
  if (shared - reusable < leader_size / kLeaderShare) return false;
  followers_.push_back(
      {.newcomer = std::move(newcomer), .leader = found.entry->second.front(), .shared = shared});
  return true;
}

void SingleFlight::lead(const Newcomer& newcomer) {
  if (newcomer.tokens.size() <= static_cast<std::size_t>(kTokensMin)) return;
  const auto [entry, fresh] = leaders_.insert({newcomer.group, newcomer.tokens}, {});
  entry->second.push_back(newcomer.id);
  entries_.emplace(newcomer.id, entry);
}

void SingleFlight::end(SequenceId id) {
  std::erase_if(followers_, [id](const Follower& f) { return f.newcomer.id == id; });
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  auto& same = found->second->second;
  std::erase(same, id);
  if (same.empty()) leaders_.erase(found->second);
  entries_.erase(found);
}

void SingleFlight::park(SequenceId id, bool parked) {
  const auto found =
      std::ranges::find(followers_, id, [](const Follower& f) { return f.newcomer.id; });
  if (found != followers_.end()) found->newcomer.parked = parked;
}

std::vector<SingleFlight::Ready> SingleFlight::take_ready(
    const std::function<std::optional<int>(SequenceId)>& held) {
  std::vector<Ready> ready;
  std::erase_if(followers_, [&](Follower& follower) {
    const auto cells = held(follower.leader);
    if (cells && *cells < follower.shared) return false;
    ready.push_back({.newcomer = std::move(follower.newcomer),
                     .leader = cells ? follower.leader : 0,
                     .shared = follower.shared});
    return true;
  });
  return ready;
}

}  // namespace flotilla::batch
