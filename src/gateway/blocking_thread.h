#pragma once

#include <type_traits>
#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/task.h"

namespace flotilla::gateway {

// Where the gateway's blocking work goes (SQLite, files): one thread, one piece after another. The
// I/O thread gets the value back.
class BlockingThread {
 public:
  template <class Work>
  Awaitable<std::invoke_result_t<Work>> run(Work work) {
    using Value = std::invoke_result_t<Work>;
    const Executor io = co_await boost::asio::this_coro::executor;
    auto initiate = [this, io](auto handler, Work task) {
      boost::asio::post(thread_, [io, handler = std::move(handler),
                                  task = std::move(task)]() mutable {
        Value value = task();
        boost::asio::post(io, [handler = std::move(handler), value = std::move(value)]() mutable {
          std::move(handler)(std::move(value));
        });
      });
    };
    co_return co_await boost::asio::async_initiate<decltype(boost::asio::use_awaitable),
                                                   void(Value)>(
        std::move(initiate), boost::asio::use_awaitable, std::move(work));
  }

  void join() { thread_.join(); }

 private:
  boost::asio::thread_pool thread_{1};
};

}  // namespace flotilla::gateway
