#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batch/prefix_index.h"
#include "engine/engine.h"

namespace flotilla::batch {

using Cells = std::shared_ptr<const std::vector<std::byte>>;  // as Engine::save() made them

// Conversations that are not computing: their cells in host memory, found by the longest common
// prefix. The least recently used go when `bytes_max` is reached. One thread owns it.
class PrefixStore {
 public:
  struct Options {
    std::int64_t bytes_max = 0;  // 0 = nothing is kept
    bool can_cut = true;         // cells of a beginning can be had of a longer sequence's
    int tokens_min = 64;         // shorter ones cost less to compute than to keep
  };
  explicit PrefixStore(const Options& options) : options_(options) {}

  struct Match {
    Cells cells;     // of `stored` tokens, of which the first `length` are those asked for
    int length = 0;  // tokens, >= tokens_min
    int stored = 0;
  };
  // The most of `tokens`, without the last one, whose logits must be computed.
  std::optional<Match> find(const std::string& group, std::span<const engine::Token> tokens);

  bool wants(std::size_t tokens) const;
  // What it makes superfluous goes; what does not fit is not kept. True where it was kept.
  bool put(const std::string& group, std::vector<engine::Token> tokens, Cells cells);
  // Goes down to `bytes`, the oldest first.
  void shrink(std::int64_t bytes);

  std::int64_t bytes() const { return bytes_; }
  std::size_t size() const { return index_.size(); }

 private:
  struct Entry;
  using Index = PrefixIndex<Entry>;
  struct Entry {
    Cells cells;
    std::int64_t bytes = 0;
    std::list<Index::iterator>::iterator use;
  };
  void touch(Index::iterator entry);
  void drop(Index::iterator entry);

  const Options options_;
  Index index_;
  std::list<Index::iterator> uses_;  // the least recent first
  std::int64_t bytes_ = 0;
};

}  // namespace flotilla::batch
