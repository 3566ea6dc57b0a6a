#include "nodes/child_end.h"

#include <csignal>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace flotilla::nodes {

Awaitable<void> end_child(Executor executor, platform::Process& process,
                          std::chrono::milliseconds limit) {
  using namespace boost::asio::experimental::awaitable_operators;
  using boost::asio::posix::stream_descriptor;
  if (!process.poll() && limit.count() > 0) {
    stream_descriptor exit(executor, process.exit_fd());
    boost::asio::steady_timer deadline(executor, limit);
    co_await (exit.async_wait(stream_descriptor::wait_read, kAwait) || deadline.async_wait(kAwait));
    exit.release();
  }
  if (!process.poll()) process.signal(SIGKILL);
  // After SIGKILL the wait is short; a process in an uninterruptible call is left to init.
  boost::asio::steady_timer again(executor);
  for (int i = 0; i < 100 && !process.poll(); ++i) {
    again.expires_after(std::chrono::milliseconds(20));
    co_await again.async_wait(kAwait);
  }
  if (!process.poll()) process.release();
}

}  // namespace flotilla::nodes
