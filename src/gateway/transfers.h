#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "api/inventory.h"
#include "api/transfers.h"
#include "base/clock.h"
#include "base/task.h"
#include "gateway/control.h"

namespace flotilla::gateway {

// How long the two ends of a copy may say nothing, where `have` bytes of the file came before: each
// reads them for the file's hash first.
std::chrono::seconds silence_limit(std::int64_t have);

// Copies of models from a node that has one to nodes that lack it, each by two programs of ours at
// the two ends whose pipes meet here: for a node elsewhere through an ssh of its own, beside the
// link. What came before a break is kept there and gone on from; a file takes its place only when
// its hash is the sender's. The last ones are remembered. I/O thread only.
class Transfers {
 public:
  Transfers(Executor executor, const Clock& clock, Control& control);
  ~Transfers();

  // Answers once it is known what is to be copied; the copying goes on. NotFound: no node has it.
  // Conflict: it is being copied there already.
  Task<api::Transfer> begin(api::SyncSpec spec);
  Result<api::Transfer> find(const std::string& id) const;
  Result<api::Transfer> cancel(const std::string& id);
  std::vector<api::Transfer> list() const;  // the newest first
  bool running() const;

 private:
  struct Copy;     // one of them
  class Delivery;  // its way to one node
  static void plan(Copy& copy, const api::SyncSpec& spec, const std::vector<api::NodeModels>& asked,
                   const std::vector<api::NodeSpec>& all);
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
