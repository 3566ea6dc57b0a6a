#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace flotilla::batch {

inline std::size_t common_prefix(std::span<const engine::Token> a,
                                 std::span<const engine::Token> b) {
  const auto [at, other] = std::ranges::mismatch(a, b);
  return static_cast<std::size_t>(at - a.begin());
}

// Token sequences in the order of a dictionary, each with a value, by group: those of one group are
// never found from another. In that order the one that shares most with a given sequence stands
// beside it, so a search costs two comparisons of sequences beyond the tree's own.
template <class Value>
class PrefixIndex {
 public:
  using Key = std::pair<std::string, std::vector<engine::Token>>;
  using Map = std::map<Key, Value>;
  using iterator = typename Map::iterator;

  // false: these very tokens are there already; their entry stays as it is.
  std::pair<iterator, bool> insert(Key key, Value value) {
    return entries_.emplace(std::move(key), std::move(value));
  }
  void erase(iterator entry) { entries_.erase(entry); }
  iterator end() { return entries_.end(); }
  std::size_t size() const { return entries_.size(); }

  // The entry that shares most tokens with `key`, and how many.
  struct Found {
    iterator entry;
    std::size_t shared = 0;
  };
  Found find_longest(const Key& key) {
    Found best{.entry = entries_.end(), .shared = 0};
    const auto after = entries_.lower_bound(key);
    const auto consider = [&](iterator entry) {
      if (entry->first.first != key.first) return;
      const std::size_t shared = common_prefix(entry->first.second, key.second);
      if (shared > best.shared) best = {.entry = entry, .shared = shared};
    };
    if (after != entries_.end()) consider(after);
    if (after != entries_.begin()) consider(std::prev(after));
    return best;
  }

  // The longest entry that is a beginning of `key`, or all of it; end() if there is none.
  iterator find_whole(Key key) {
    for (;;) {
      auto entry = entries_.upper_bound(key);
      if (entry == entries_.begin()) return entries_.end();
      --entry;
      if (entry->first.first != key.first) return entries_.end();
      const std::size_t shared = common_prefix(entry->first.second, key.second);
      if (shared == entry->first.second.size()) return entry;
      key.second.resize(shared);  // what begins `key` and stands before `entry` is within that
    }
  }

 private:
  Map entries_;
};

}  // namespace flotilla::batch
