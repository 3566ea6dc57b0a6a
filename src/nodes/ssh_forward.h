#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/task.h"
#include "platform/process.h"

namespace flotilla::nodes {

// One replica's socket, reached through an ssh of its own. An ssh that ends is started again after
// a second, until close(). On the executor's one thread; destroying it closes it.
class SshForward {
 public:
  struct Options {
    Executor executor;
    std::string name = {};  // for the log
    platform::Command command = {};
    std::string socket = {};  // here; removed with the forward
  };
  explicit SshForward(Options options);
  SshForward(const SshForward&) = delete;
  SshForward& operator=(const SshForward&) = delete;
  ~SshForward();

  const std::string& socket() const;
  bool is_open() const;
  // NotFound: closed meanwhile. DeadlineExceeded ends in ssh's own last line.
  Task<void> wait_open(std::chrono::milliseconds limit);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace flotilla::nodes
