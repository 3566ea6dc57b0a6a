#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/task.h"
#include "platform/process.h"

namespace flotilla::nodes {

// One replica's socket, reached through an ssh of its own. An ssh that ends is started again after
// a second, until close(). On the executor's one thread; destroying it closes it.
//
// The socket here accepts before ssh has asked sshd for the other end, and an sshd that forwards
// nothing is known only by what it does with a connection. For a socket's end it gives the same
// reason whether forwarding is forbidden or nobody listens, so that is judged where somebody does.
class SshForward {
 public:
  struct Options {
    Executor executor;
    std::string name = {};  // for the log
    platform::Command command = {};
    std::string socket = {};  // here; removed with the forward
    std::string remedy = {};  // what would do about an sshd that forwards nothing
    // ssh said that sshd forbids it; told once, from the event loop.
    std::function<void(std::string why)> on_forbidden = {};
    std::chrono::milliseconds try_again{200};  // after a connection that was closed
  };
  explicit SshForward(Options options);
  SshForward(const SshForward&) = delete;
  SshForward& operator=(const SshForward&) = delete;
  ~SshForward();

  const std::string& socket() const;
  // A connection through it was not closed.
  bool is_open() const;
  // Of a replica that listens. NotFound: closed meanwhile. Unavailable: whatever connects is
  // closed, and what would do. DeadlineExceeded ends in ssh's own last line.
  Task<void> wait_open(std::chrono::milliseconds limit);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace flotilla::nodes
