#pragma once

#include <boost/asio/steady_timer.hpp>

#include "base/task.h"

namespace flotilla::nodes {

// Ends what runs, from elsewhere; also before it began.
class Stop {
 public:
  explicit Stop(const Executor& executor);
  void ask();
  bool asked() const { return asked_; }
  Awaitable<void> wait();

 private:
  bool asked_ = false;
  boost::asio::steady_timer timer_;
};

}  // namespace flotilla::nodes
