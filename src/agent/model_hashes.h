#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/thread_pool.hpp>

#include "base/task.h"
#include "model/model_files.h"

namespace flotilla::agent {

// SHA-256 of model files, worked out on a thread of its own and remembered in a file for as long as
// device, inode, size and change time are the same. Called on one thread.
class ModelHashes {
 public:
  ModelHashes(Executor executor, std::filesystem::path cache_file);
  ~ModelHashes();  // gives up what is under way

  // In hex; of a split the hash of its parts' hashes. Empty: not known within `limit` (it goes on
  // being worked out), or a file cannot be read.
  Awaitable<std::string> find(model::ModelFileSet files, std::chrono::milliseconds limit);

 private:
  struct Job;
  std::string work_out(const model::ModelFileSet& files);
  std::string hash_of(const std::filesystem::path& file);
  void read_cache();

  Executor executor_;
  const std::filesystem::path cache_file_;
  std::map<std::string, std::shared_ptr<Job>> jobs_;  // under way, by first file
  // The thread's alone.
  std::map<std::string, std::string> cache_;  // identity of a file -> hash
  bool cache_read_ = false;
  std::atomic<bool> stop_ = false;
  boost::asio::thread_pool thread_{1};
};

}  // namespace flotilla::agent
