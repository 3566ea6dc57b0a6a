#include "batch/prefix_store.h"

namespace flotilla::batch {
namespace {

constexpr int kStoredShare = 16;

}  // namespace

std::optional<PrefixStore::Match> PrefixStore::find(const std::string& group,
                                                    std::span<const engine::Token> tokens) {
  if (tokens.empty() || index_.size() == 0) return std::nullopt;
  const auto most = tokens.first(tokens.size() - 1);
  const Index::Key key{group, {most.begin(), most.end()}};
  const auto found =
      options_.can_cut ? index_.find_longest(key) : Index::Found{.entry = index_.find_whole(key)};
  if (found.entry == index_.end()) return std::nullopt;
  const auto stored = static_cast<int>(found.entry->first.second.size());
  const int length = options_.can_cut ? static_cast<int>(found.shared) : stored;
  // All that is stored is copied for it, at about a fortieth of what computing costs.
  if (length < options_.tokens_min || length < stored / kStoredShare) return std::nullopt;
  touch(found.entry);
  return Match{.cells = found.entry->second.cells, .length = length, .stored = stored};
}

bool PrefixStore::wants(std::size_t tokens) const {
  return options_.bytes_max > 0 && tokens >= static_cast<std::size_t>(options_.tokens_min);
}

bool PrefixStore::put(const std::string& group, std::vector<engine::Token> tokens, Cells cells) {
  const auto bytes =
      static_cast<std::int64_t>(cells->size() + tokens.size() * sizeof(engine::Token));
  if (!wants(tokens.size()) || bytes > options_.bytes_max) return false;
  Index::Key key{group, std::move(tokens)};
  if (options_.can_cut) {
    const auto found = index_.find_longest(key);
    if (found.shared == key.second.size()) {  // a longer one has all of it
      touch(found.entry);
      return true;
    }
    while (true) {
      const auto shorter = index_.find_whole(key);
      if (shorter == index_.end()) break;
      drop(shorter);
    }
  }
  shrink(options_.bytes_max - bytes);
  const auto [entry, fresh] = index_.insert(std::move(key), {});
  if (fresh) {
    entry->second = {.cells = std::move(cells), .bytes = bytes, .use = {}};
    entry->second.use = uses_.insert(uses_.end(), entry);
    bytes_ += bytes;
  } else {
    touch(entry);
  }
  return true;
}

void PrefixStore::shrink(std::int64_t bytes) {
  while (bytes_ > bytes && !uses_.empty()) drop(uses_.front());
}

void PrefixStore::touch(Index::iterator entry) {
  uses_.splice(uses_.end(), uses_, entry->second.use);
}

void PrefixStore::drop(Index::iterator entry) {
  bytes_ -= entry->second.bytes;
  uses_.erase(entry->second.use);
  index_.erase(entry);
}

}  // namespace flotilla::batch
