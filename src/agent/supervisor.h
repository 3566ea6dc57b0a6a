#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include "agent/runner_process.h"
#include "agent/served_model.h"
#include "api/agent_frames.h"
#include "base/task.h"

namespace flotilla::agent {

// All runners of a machine, by replica. One thread; its coroutines end before it does (stop_all).
class Supervisor {
 public:
  struct Options {
    Executor executor;
    boost::asio::thread_pool* disk = nullptr;
    std::filesystem::path program = {};  // flotilla
    std::filesystem::path log_dir = {};
    std::filesystem::path socket_dir = {};  // paths in it fit a socket address
    std::filesystem::path cells_dir = {};   // runners keep conversations in it
    std::function<void(api::AgentEvent)> on_event = {};
  };
  explicit Supervisor(Options options);

  // Ends in ReplicaExited whatever goes wrong. A replica that is there already is not started
  // again.
  void start(const api::StartReplica& start);
  void stop(const std::string& replica, std::chrono::milliseconds grace);
  // No start is taken any more; returns when all have ended.
  Awaitable<void> stop_all(std::chrono::milliseconds grace);

  bool empty() const { return runners_.empty(); }
  std::vector<api::HeldReplica> holds() const;
  std::vector<api::ReplicaUsage> usage() const;
  std::vector<int> pids() const;
  // Looks at the kernel's counter of memory kills: what it counts from now on is news.
  void note_memory_kills();

 private:
  struct Runner {
    std::string generation;
    std::shared_ptr<RunnerProcess> process;  // null while the model is looked for
    bool stop_asked = false;
    int port = 0;  // an engine's
  };
  Awaitable<void> run(api::StartReplica start);
  Result<std::shared_ptr<RunnerProcess>> spawn(const api::StartReplica& start,
                                               const std::filesystem::path& model);
  Result<std::shared_ptr<RunnerProcess>> spawn_engine(const api::StartReplica& start,
                                                      const ServedModel& served);
  Awaitable<void> judge_port(std::string replica, api::ReplicaExited& exited);
  void say_not_started(const std::string& replica, std::string reason);
  bool take_memory_kill();
  std::filesystem::path cells_of(const api::StartReplica& start) const;

  const Options options_;
  std::map<std::string, Runner> runners_;
  boost::asio::steady_timer all_ended_;
  std::int64_t memory_kills_ = 0;
  std::uint64_t next_socket_ = 1;
  bool ending_ = false;
};

}  // namespace flotilla::agent
