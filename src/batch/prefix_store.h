#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "batch/prefix_index.h"
#include "engine/engine.h"

namespace flotilla::batch {

// Conversations that are not computing, found by the longest common prefix. The least recently used
// go when `bytes_max` is reached. `Value` is what is kept of one: its cells, or where they lie. One
// thread owns it.
template <class Value>
class PrefixStore {
 public:
  using Key = typename PrefixIndex<Value>::Key;
  enum class Why { NoRoom, Superseded };  // a longer one has all of it
  struct Options {
    std::int64_t bytes_max = 0;  // 0 = nothing is kept
    bool can_cut = true;         // cells of a beginning can be had of a longer sequence's
    int tokens_min = 64;         // shorter ones cost less to compute than to keep
    std::function<void(const Key&, const Value&, Why)> on_drop = {};
  };
  explicit PrefixStore(Options options) : options_(std::move(options)) {}

  struct Match {
    Value value;     // of `stored` tokens, of which the first `length` are those asked for
    int length = 0;  // tokens, >= tokens_min
    int stored = 0;
  };
  // The most of `tokens`, without the last one, whose logits must be computed.
  std::optional<Match> find(const std::string& group, std::span<const engine::Token> tokens) {
    if (tokens.empty() || index_.size() == 0) return std::nullopt;
    const auto most = tokens.first(tokens.size() - 1);
    const Key key{group, {most.begin(), most.end()}};
    const Found found = options_.can_cut ? index_.find_longest(key)
                                         : Found{.entry = index_.find_whole(key), .shared = 0};
    if (found.entry == index_.end()) return std::nullopt;
    const auto stored = static_cast<int>(found.entry->first.second.size());
    const int length = options_.can_cut ? static_cast<int>(found.shared) : stored;
    // All that is stored is copied for it, at about a fortieth of what computing costs.
    if (length < options_.tokens_min || length < stored / kStoredShare) return std::nullopt;
    touch(found.entry);
    return Match{.value = found.entry->second.value, .length = length, .stored = stored};
  }

  bool wants(std::size_t tokens) const {
    return options_.bytes_max > 0 && tokens >= static_cast<std::size_t>(options_.tokens_min);
  }

  // Whether all that these tokens could be asked for is there.
  bool covers(const Key& key) {
    const Found found = index_.find_longest(key);
    if (found.entry == index_.end() || found.shared < key.second.size()) return false;
    if (!options_.can_cut && found.entry->first.second.size() != key.second.size()) return false;
    touch(found.entry);
    return true;
  }

  // What it makes superfluous goes; what does not fit is not kept. True where it is there.
  bool put(Key key, Value value, std::int64_t bytes) {
    bytes += static_cast<std::int64_t>(key.second.size() * sizeof(engine::Token));
    if (!wants(key.second.size()) || bytes > options_.bytes_max) return false;
    if (covers(key)) return true;
    while (options_.can_cut) {
      const auto shorter = index_.find_whole(key);
      if (shorter == index_.end()) break;
      drop(shorter, Why::Superseded);
    }
    shrink(options_.bytes_max - bytes);
    const auto entry = index_.insert(std::move(key), {}).first;
    entry->second = {.value = std::move(value), .bytes = bytes, .use = {}};
    entry->second.use = uses_.insert(uses_.end(), entry);
    bytes_ += bytes;
    return true;
  }

  // Goes down to `bytes`, the oldest first.
  void shrink(std::int64_t bytes) {
    while (bytes_ > bytes && !uses_.empty()) drop(uses_.front(), Why::NoRoom);
  }

  // One that turned out to be of no use.
  void forget(const Value& value) {
    const auto found = std::ranges::find_if(
        uses_, [&](const auto& entry) { return entry->second.value == value; });
    if (found != uses_.end()) drop(typename Index::iterator(*found), Why::NoRoom);
  }

  std::int64_t bytes() const { return bytes_; }
  std::size_t size() const { return index_.size(); }

 private:
  static constexpr int kStoredShare = 16;
  struct Entry;
  using Index = PrefixIndex<Entry>;
  using Found = typename Index::Found;
  struct Entry {
    Value value{};
    std::int64_t bytes = 0;
    typename std::list<typename Index::iterator>::iterator use{};
  };

  void touch(typename Index::iterator entry) {
    uses_.splice(uses_.end(), uses_, entry->second.use);
  }
  void drop(typename Index::iterator entry, Why why) {
    if (options_.on_drop) options_.on_drop(entry->first, entry->second.value, why);
    bytes_ -= entry->second.bytes;
    uses_.erase(entry->second.use);
    index_.erase(entry);
  }

  const Options options_;
  Index index_;
  std::list<typename Index::iterator> uses_;  // the least recent first
  std::int64_t bytes_ = 0;
};

using Cells = std::shared_ptr<const std::vector<std::byte>>;  // as Engine::save() made them
using CellStore = PrefixStore<Cells>;

}  // namespace flotilla::batch
