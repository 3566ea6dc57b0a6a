#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "platform/process.h"

namespace flotilla::nodes {

// How a machine's agent is reached. NodeLink owns the agent's process, its pipes and the retries;
// a transport owns what makes the replicas' sockets reachable. Used on the gateway's I/O thread
// only; nothing here may block.
class Transport {
 public:
  virtual ~Transport() = default;
  // The program whose stdin and stdout are the agent's: the agent itself, or ssh to it.
  virtual platform::Command agent_command() const = 0;
  // What to do about a program that ended with these last lines on stderr; empty: nothing is known.
  virtual std::string remedy(const std::vector<std::string>&) const { return {}; }

  // The path at which this machine connects to a replica's socket (ssh: of a forward that it
  // starts, which may take a while).
  virtual Result<std::string> open_socket(const std::string& replica,
                                          const std::string& socket) = 0;
  virtual bool is_open(const std::string&) const { return true; }
  // Until is_open, of a replica that listens. NotFound: it was closed; another error says why it
  // cannot be opened.
  virtual Task<void> wait_open(std::string, std::chrono::milliseconds) { co_return Result<void>{}; }
  virtual void close_socket(const std::string& replica) = 0;
  virtual void close_all_sockets() {}

  // A socket that nobody will ever reach, and why; called from the event loop. Set by its link.
  std::function<void(const std::string& replica, std::string why)> on_barred = {};
};

}  // namespace flotilla::nodes
