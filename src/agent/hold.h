#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/local/stream_protocol.hpp>

#include "base/task.h"
#include "platform/fd.h"
#include "platform/file_lock.h"

namespace flotilla::agent {

// One agent holds a machine's run directory: it has the lock, and a socket at which later agents of
// the same gateway ask to become pipes to it.
class Hold {
 public:
  // Conflict: another agent has it.
  static Result<Hold> acquire(Executor executor, const std::filesystem::path& run_dir,
                              const std::filesystem::path& socket_dir, const std::string& state_id);

  // Waits for the next agent with our state id; others are refused, naming us. The descriptors are
  // its connection, ready for frames.
  struct Attached {
    platform::Fd in;
    platform::Fd out;
  };
  Awaitable<std::optional<Attached>> next();
  void close();

 private:
  using Acceptor = boost::asio::local::stream_protocol::acceptor;
  Hold(platform::FileLock lock, Acceptor acceptor, std::string state_id, std::string holder);

  platform::FileLock lock_;
  Acceptor acceptor_;
  std::string state_id_;
  std::string holder_;
};

// Connects our stdin and stdout to the agent that holds the directory, until either side ends.
// Unavailable: nobody answers there (it may be just about to end).
Awaitable<Result<void>> become_pipe(Executor executor, std::filesystem::path socket_dir,
                                    std::string state_id);

}  // namespace flotilla::agent
