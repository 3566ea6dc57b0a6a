#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "api/agent_frames.h"
#include "base/clock.h"
#include "base/task.h"
#include "platform/fd.h"

namespace flotilla::agent {

// The agent's end of one connection: our stdin and stdout, or a socket at which a later agent is
// the pipe to a gateway. One thread; must outlive run().
class GatewayLink {
 public:
  struct Options {
    Executor executor;
    const Clock* clock = nullptr;
    std::chrono::milliseconds heartbeat{2000};
    std::chrono::milliseconds dead_after{15000};
    std::function<void(api::AgentCommand)> on_command = {};  // all but heartbeats
  };
  GatewayLink(Options options, platform::Fd in, platform::Fd out);

  // Until the gateway is gone, silent or cut; returns why, in words.
  Awaitable<std::string> run();
  // Dropped when 4 MiB wait already: then the link is cut.
  void send(const api::AgentEvent& event);
  void cut(std::string reason);
  // Writes what is queued for at most `limit`; after run().
  Awaitable<void> flush(std::chrono::milliseconds limit);

 private:
  Awaitable<std::string> read_frames();
  Awaitable<std::string> write_frames();
  Awaitable<std::string> beat();
  Awaitable<std::string> wait_for_cut();
  Awaitable<bool> write_queue();

  const Options options_;
  boost::asio::posix::stream_descriptor in_;
  boost::asio::posix::stream_descriptor out_;
  boost::asio::steady_timer queued_;
  boost::asio::steady_timer cut_;
  std::deque<std::string> queue_;
  std::size_t queue_bytes_ = 0;
  std::string cut_reason_;
  Instant heard_;
  std::int64_t heard_unix_ms_ = 0;
};

}  // namespace flotilla::agent
