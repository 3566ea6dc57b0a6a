#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/clock.h"
#include "base/task.h"

namespace flotilla::runner {

// A few threads for work on text: parsing, templates, tokens. The I/O thread awaits what they make.
class TextPool {
 public:
  explicit TextPool(int threads) : pool_(static_cast<std::size_t>(threads)) {}
  // Finishes what was begun.
  ~TextPool() { pool_.join(); }

  // Runs `work` on a thread of the pool; the caller goes on with its value on its own executor.
  // `work` owns all that it needs: the caller may be gone when it runs.
  template <class Work>
  Awaitable<std::invoke_result_t<Work&>> run(Work work) {
    using Value = std::invoke_result_t<Work&>;
    return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(Value)>(
        Start{pool_}, boost::asio::use_awaitable, std::move(work));
  }

  // As run(), but `work` is given a function to call before what may be slow, and from then on has
  // `limit`: nullopt when that was over first. Its thread is busy until it is done all the same.
  template <class Work>
  Awaitable<std::optional<std::invoke_result_t<Work&, const std::function<void()>&>>> run_within(
      Work work, Duration limit) {
    using Value = std::invoke_result_t<Work&, const std::function<void()>&>;
    const Executor home = co_await boost::asio::this_coro::executor;
    const auto waiting = std::make_shared<Waiting<Value>>(home);
    post_work(std::move(work), limit, home, waiting);
    while (!waiting->value) {
      const auto [aborted] = co_await waiting->timer.async_wait(kAwait);
      if (waiting->value || aborted) continue;
      waiting->given_up = true;
      ++*overdue_;
      co_return std::nullopt;
    }
    co_return std::move(waiting->value);
  }
  // Threads whose work nobody waits for any more.
  int overdue() const { return *overdue_; }

 private:
  // Of a caller of run_within(); on its executor.
  template <class Value>
  struct Waiting {
    explicit Waiting(const Executor& home) : timer(home, Instant::max()) {}
    boost::asio::steady_timer timer;  // rings when the limit is over, is cancelled by news
    std::optional<Value> value;
    bool given_up = false;
  };

  template <class Work, class Value>
  void post_work(Work work, Duration limit, const Executor& home,
                 std::shared_ptr<Waiting<Value>> waiting) {
    boost::asio::post(pool_, [overdue = overdue_, work = std::move(work), limit, waiting,
                              guard = boost::asio::make_work_guard(home)]() mutable {
      const std::function<void()> slow = [&guard, waiting, limit] {
        boost::asio::post(guard.get_executor(),
                          [waiting, limit] { waiting->timer.expires_after(limit); });
      };
      auto value = work(slow);
      boost::asio::post(guard.get_executor(),
                        [overdue, waiting, value = std::move(value)]() mutable {
                          if (waiting->given_up) --*overdue;
                          waiting->value = std::move(value);
                          waiting->timer.cancel();
                        });
    });
  }

  struct Start {
    boost::asio::thread_pool& pool;

    template <class Done, class Work>
    void operator()(Done done, Work work) const {
      auto home = boost::asio::make_work_guard(boost::asio::get_associated_executor(done));
      boost::asio::post(
          pool, [done = std::move(done), work = std::move(work), home = std::move(home)]() mutable {
            auto value = work();
            boost::asio::post(home.get_executor(),
                              [done = std::move(done), value = std::move(value)]() mutable {
                                std::move(done)(std::move(value));
                              });
          });
    }
  };

  // Shared: work may end after this object did.
  const std::shared_ptr<std::atomic<int>> overdue_ = std::make_shared<std::atomic<int>>(0);
  boost::asio::thread_pool pool_;
};

}  // namespace flotilla::runner
