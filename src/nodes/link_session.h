#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "api/agent_frames.h"
#include "base/clock.h"
#include "base/task.h"
#include "platform/process.h"

namespace flotilla::nodes {

// One connection to an agent: its process, the three pipes and the heartbeats. For node_link.cpp.
// Must outlive run(); on the executor's one thread.
class LinkSession {
 public:
  struct Options {
    Executor executor;
    const Clock* clock = nullptr;
    std::string name = {};
    std::chrono::milliseconds heartbeat{};
    std::chrono::milliseconds dead_after{};
    std::function<void(api::AgentEvent)> on_event = {};  // all but heartbeats
    // What to do about a program that ended with these last lines on stderr.
    std::function<std::string(const std::vector<std::string>&)> remedy = {};
  };
  LinkSession(Options options, platform::Process process);

  // Until the agent is gone, silent or cut; returns why, in words.
  Awaitable<std::string> run();
  // Queues a frame; when 4 MiB wait the agent does not read any more, and the session is cut.
  void send(std::string frame);
  // Ends run() soon. The first reason counts.
  void cut(std::string reason);

  double round_trip_ms() const { return round_trip_ms_; }

  // After run(): closes the pipes and waits for the process, which is killed when `limit` is over.
  Awaitable<void> end_process(std::chrono::milliseconds limit);
  // After run(): closes the pipes; the agent lives on.
  void release_process();

 private:
  Awaitable<std::string> read_frames();
  Awaitable<std::string> write_frames();
  Awaitable<std::string> read_log();
  Awaitable<std::string> beat();
  Awaitable<std::string> wait_for_cut();
  std::string take(const std::string& frame);
  Awaitable<std::string> ended();
  void close_pipes();

  Options options_;
  platform::Process process_;
  boost::asio::posix::stream_descriptor in_;  // the agent's stdin
  boost::asio::posix::stream_descriptor out_;
  boost::asio::posix::stream_descriptor err_;
  boost::asio::steady_timer queued_;  // cancelled when there is something to write
  boost::asio::steady_timer cut_;
  std::deque<std::string> queue_;
  std::size_t queue_bytes_ = 0;
  std::string cut_reason_;
  std::vector<std::string> last_lines_;  // of its log
  boost::asio::steady_timer log_ended_;  // cancelled at the log's end
  bool log_over_ = false;
  Instant heard_;
  std::int64_t heard_unix_ms_ = 0;
  double round_trip_ms_ = 0;
  bool greeted_ = false;  // something but beats has come
};

}  // namespace flotilla::nodes
