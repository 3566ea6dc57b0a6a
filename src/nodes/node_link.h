#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/agent_frames.h"
#include "base/clock.h"
#include "base/task.h"
#include "nodes/transport.h"

namespace flotilla::nodes {

enum class LinkState { Connecting, Up, Down };

struct LinkStatus {
  LinkState state = LinkState::Connecting;
  std::string reason;          // why it is down or, while it is tried again, was; in words
  bool other_version = false;  // its agent speaks another protocol
  double round_trip_ms = 0;    // of the last heartbeat
};

// The gateway's end of one machine's agent: one link a machine, so all local nodes share one.
// Starts the agent, speaks frames with it, and when it is gone tries again every 5-15 s for ever.
//
// All calls and all callbacks are on the executor's one thread. Callbacks come from the event loop,
// never from inside a call to the link. Destroying the link cuts it: no callback comes after.
class NodeLink {
 public:
  struct Options {
    Executor executor;
    const Clock* clock = nullptr;  // outlives the executor
    std::uint64_t seed = 0;        // of the retries' jitter
    std::string name = {};         // for the log
    std::unique_ptr<Transport> transport = {};
    std::chrono::milliseconds heartbeat{2000};
    std::chrono::milliseconds dead_after{10000};  // nothing heard: the link is cut, a beat later
    std::chrono::milliseconds end_after{2000};    // without a link it is killed then
    std::chrono::milliseconds retry_min{5000};
    std::chrono::milliseconds retry_max{15000};
    // Up: on_event(AgentHello) follows, whose holds[] are all the replicas that there are; what the
    // gateway knew beyond them is gone. Down: nothing is known until the next hello.
    std::function<void(const LinkStatus&)> on_state = {};
    // Everything that the agent says but heartbeats and answers to requests. Sockets are already as
    // this machine reaches them: a replica is told as ready once its socket accepts here, and one
    // whose socket cannot be reached as ended.
    std::function<void(const api::AgentEvent&)> on_event = {};
  };

  explicit NodeLink(Options options);
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;
  ~NodeLink();

  void start();
  const LinkStatus& status() const;
  // The agent's hello while the link is up.
  const api::AgentHello* hello() const;

  // Unavailable: the link is not up, and nothing was sent. TooLarge: the spec does not fit in a
  // frame.
  Result<void> start_replica(const api::StartReplica& start);
  Result<void> stop_replica(const api::StopReplica& stop);

  // Answers within `limit`, or Unavailable / DeadlineExceeded.
  Task<api::ModelList> list_models(std::string models_dir, std::chrono::milliseconds limit);
  Task<api::PreflightAnswer> preflight(api::Preflight question, std::chrono::milliseconds limit);

  // A piece of a runner's log; offset < 0: from its end.
  Task<api::LogText> read_log(api::ReadLog what, std::chrono::milliseconds limit);

  // A down link that is waiting tries at once.
  void retry_now();
  // The agent's runners and the agent end; the link starts it again at once. One of another
  // protocol is told so when it says its next hello, which is tried for at once.
  void restart_agent();

  // The last act, before destruction. End: the runners get `grace`, then the agent is gone, too.
  // Keep: the agent holds the runners for its grace, for a gateway that comes after us.
  enum class Runners { End, Keep };
  Awaitable<void> close(Runners runners, std::chrono::milliseconds grace);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace flotilla::nodes
