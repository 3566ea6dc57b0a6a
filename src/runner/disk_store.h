#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "batch/prefix_store.h"
#include "runner/cell_file.h"

namespace flotilla::runner {

// Conversations for which there is no room in memory, in files of one folder: found by the longest
// common beginning, as those in memory are, written and read by a thread of its own. What is on its
// way there is found and read like the rest. A runner that starts again takes over what another
// left.
class DiskStore {
 public:
  struct Options {
    std::filesystem::path folder;  // made with mode 0700, nobody else's
    std::int64_t bytes_max = 0;
    bool can_cut = true;
    std::int64_t pending_max = 256LL << 20;  // bytes on their way to the disk; more is not kept
  };
  // What a load brought, on the store's own thread. None: the file could not be used and is gone.
  using Deliver = std::function<void(std::uint64_t ticket, std::optional<CellFile>)>;

  // Internal: the folder cannot be had.
  static Result<std::unique_ptr<DiskStore>> open(Options options, Deliver deliver);
  // What is on its way is written no more.
  ~DiskStore();
  DiskStore(const DiskStore&) = delete;
  DiskStore& operator=(const DiskStore&) = delete;

  struct Match {
    std::uint64_t file = 0;
    int length = 0;  // tokens of those asked for
  };
  std::optional<Match> find(const std::string& group, std::span<const engine::Token> tokens);
  void put(CellFileHead head, batch::Cells cells);
  // Delivered with `ticket`, always.
  void load(std::uint64_t file, std::uint64_t ticket);

  struct Usage {
    std::int64_t bytes = 0;
    int count = 0;
  };
  Usage usage() const;

 private:
  using Files = batch::PrefixStore<std::uint64_t>;
  struct Write {
    std::uint64_t file = 0;
    CellFileHead head;
    batch::Cells cells;
  };
  using Pending = std::shared_ptr<const Write>;
  struct Read {
    std::uint64_t file = 0;
    std::uint64_t ticket = 0;
  };

  DiskStore(Options options, std::string key, Deliver deliver);
  std::filesystem::path path_of(std::uint64_t file) const;
  void take_over();
  void run();
  void write(const Write& job);
  std::optional<std::uint64_t> write_if_needed(const Write& job);
  void read(Read job);

  const Options options_;
  const std::string key_;
  const Deliver deliver_;
  bool complained_ = false;  // the thread's own

  mutable std::mutex mutex_;  // of all below
  std::uint64_t last_file_ = 0;
  Files files_;
  Files coming_;                              // the same of what is not written yet
  std::map<std::uint64_t, Pending> pending_;  // by file
  std::int64_t pending_bytes_ = 0;
  std::deque<std::variant<Pending, Read>> jobs_;
  bool closed_ = false;
  std::condition_variable ready_;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace flotilla::runner
