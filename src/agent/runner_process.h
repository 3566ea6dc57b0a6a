#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "agent/runner_log.h"
#include "api/agent_frames.h"
#include "base/task.h"
#include "platform/process.h"

namespace flotilla::agent {

// One runner, or one engine in its holder: its process, what it says on stdout and stderr, its end.
// The write end of its stdin is its life line: held here and nowhere else, so it ends when this
// process does, however it does. One thread. Lives until run() returns.
class RunnerProcess : public std::enable_shared_from_this<RunnerProcess> {
 public:
  struct Options {
    Executor executor;
    std::string replica = {};
    std::string generation = {};
    std::string socket = {};       // of an engine its address
    std::string engine = {};       // its template's name; empty: our runner
    std::int64_t model_bytes = 0;  // of an engine
    std::filesystem::path log_file = {};
    std::function<void(api::AgentEvent)> on_event = {};  // spawned, loading, ready
    std::function<bool()> take_memory_kill = {};         // has the kernel just killed for memory?
  };
  RunnerProcess(Options options, platform::Process process);

  // Says spawned, then what happens; returns its end.
  Awaitable<api::ReplicaExited> run();
  // SIGTERM, and SIGKILL when the grace is over. Again: the shorter grace counts.
  void stop(std::chrono::milliseconds grace);

  api::HeldReplica held() const;
  api::ReplicaSpawned spawned() const;
  int pid() const { return process_.pid(); }
  // Of all its processes.
  std::int64_t resident_bytes() const;
  // What a gateway that came later has missed: spawned and, if it is, ready.
  void repeat_events() const;

 private:
  Awaitable<void> read_lines();
  Awaitable<void> read_log();
  Awaitable<void> wait_for_exit();
  Awaitable<void> watch_growth();
  void take_line(const std::string& line);
  api::ReplicaExited end_report();
  void one_pipe_ended();
  bool is_engine() const { return !options_.engine.empty(); }

  const Options options_;
  platform::Process process_;
  boost::asio::posix::stream_descriptor life_line_;
  boost::asio::posix::stream_descriptor out_;
  boost::asio::posix::stream_descriptor err_;
  boost::asio::posix::stream_descriptor exit_;
  boost::asio::steady_timer kill_;
  boost::asio::steady_timer growth_;
  boost::asio::steady_timer drain_;  // after the exit: its last words are still in the pipes
  RunnerLog log_;
  std::optional<api::RunnerInfo> info_;
  std::string failure_;
  int open_pipes_ = 2;
  bool stop_asked_ = false;
  bool killed_ = false;
};

}  // namespace flotilla::agent
