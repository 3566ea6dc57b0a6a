#pragma once

#include <functional>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/task.h"

// What blocks on the disk happens on a thread of its own and comes back as a value.
namespace flotilla::agent {

template <class R>
Awaitable<R> run_work(std::function<R()> work) {
  co_return work();
}

template <class R>
Awaitable<R> on_pool(boost::asio::thread_pool& pool, std::function<R()> work) {
  R result = co_await boost::asio::co_spawn(pool.get_executor(), run_work<R>(std::move(work)),
                                            boost::asio::use_awaitable);
  co_return result;
}

}  // namespace flotilla::agent
