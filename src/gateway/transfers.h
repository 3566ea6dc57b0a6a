#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/transfers.h"
#include "base/clock.h"
#include "base/task.h"
#include "gateway/control.h"
#include "gateway/sync_source.h"

namespace flotilla::gateway {

// How long the two ends of a copy may say nothing, where `have` bytes of the file came before: each
// reads them for the file's hash first.
std::chrono::seconds silence_limit(std::int64_t have);

// Of transfers, the newest first, the one to be forgotten when there are too many: the oldest that
// has ended. nullopt: all are under way.
std::optional<std::size_t> oldest_ended(const std::vector<api::TransferState>& newest_first);

// Copies of models from a node that has one to nodes that lack it, each by two programs of ours at
// the two ends whose pipes meet here: for a node elsewhere through an ssh of its own, beside the
// link. What came before a break is kept there and gone on from; a file takes its place only when
// its hash is the sender's. Those under way and the last ones are remembered. I/O thread only.
class Transfers {
 public:
  Transfers(Executor executor, const Clock& clock, Control& control);
  ~Transfers();

  // Answers once it is known what is to be copied; the copying goes on. NotFound: no node has it.
  // Conflict: it is being copied there already, or nodes have different files of that name.
  Task<api::Transfer> begin(api::SyncSpec spec);
  Result<api::Transfer> find(const std::string& id) const;
  Result<api::Transfer> cancel(const std::string& id);
  std::vector<api::Transfer> list() const;  // the newest first
  bool running() const;

 private:
  struct Copy;     // one of them
  class Delivery;  // its way to one node
  struct Found {
    std::vector<api::NodeSpec> nodes;  // of the cluster
    std::vector<Holder> holders;
    Holder source;
  };
  Task<Found> find_file(api::SyncSpec spec);
  Awaitable<void> learn_hashes(Found& found, std::string model);
  static void plan(Copy& copy, const api::SyncSpec& spec, const Found& found);
  void remember(std::shared_ptr<Copy> copy);
  Result<void> check_free(const api::SyncSpec& spec) const;
  std::shared_ptr<Copy> find_copy(const std::string& id) const;
  Awaitable<void> deliver(std::shared_ptr<Copy> copy, std::size_t node);

  Executor executor_;
  const Clock& clock_;
  Control& control_;
  std::deque<std::shared_ptr<Copy>> copies_;
  int next_ = 1;
};

}  // namespace flotilla::gateway
