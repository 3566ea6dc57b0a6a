#include "nodes/child_stop.h"

namespace flotilla::nodes {

using boost::asio::steady_timer;

Stop::Stop(const Executor& executor) : timer_(executor, steady_timer::time_point::max()) {}

void Stop::ask() {
  asked_ = true;
  timer_.cancel();
}

Awaitable<void> Stop::wait() {
  if (!asked_) co_await timer_.async_wait(kAwait);
}

}  // namespace flotilla::nodes
