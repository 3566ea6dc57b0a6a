#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
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
  explicit TextPool(int threads)
      : each_max_(std::max(1, threads - 1)), pool_(static_cast<std::size_t>(threads)) {}
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

  struct Limits {
    Duration all;   // from when a thread takes the work
    Duration slow;  // from when the work says that it may get slow
  };
  // As run(), but within limits: `work` is given a function to call before what may be slow.
  // nullopt when a limit was over first; its thread is busy until it is done all the same. `group`
  // says whose it is: one group's work never has all of the threads.
  template <class Work>
  Awaitable<std::optional<std::invoke_result_t<Work&, const std::function<void()>&>>> run_within(
      Work work, Limits limits, std::string group = {}) {
    using Value = std::invoke_result_t<Work&, const std::function<void()>&>;
    const Executor home = co_await boost::asio::this_coro::executor;
    const auto held = groups_;  // may outlive this object
    while (held->under_way[group] >= each_max_) {
      const auto turn = std::make_shared<boost::asio::steady_timer>(home, Instant::max());
      held->turns[group].push_back(turn);
      co_await turn->async_wait(kAwait);
    }
    ++held->under_way[group];
    const auto waiting = std::make_shared<Waiting<Value>>(home);
    post_work(std::move(work), limits, home, waiting, std::move(group));
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

  // Whose work is on the threads, and who waits for its own group's; on the I/O thread.
  struct Groups {
    std::map<std::string, int> under_way;
    std::map<std::string, std::deque<std::shared_ptr<boost::asio::steady_timer>>> turns;

    void end(const std::string& group) {
      if (--under_way[group] == 0) under_way.erase(group);
      const auto next = turns.find(group);
      if (next == turns.end()) return;
      next->second.front()->cancel();
      next->second.pop_front();
      if (next->second.empty()) turns.erase(next);
    }
  };

  template <class Work, class Value>
  void post_work(Work work, Limits limits, const Executor& home,
                 std::shared_ptr<Waiting<Value>> waiting, std::string group) {
    boost::asio::post(pool_, [overdue = overdue_, groups = groups_, group = std::move(group),
                              work = std::move(work), limits, waiting,
                              guard = boost::asio::make_work_guard(home)]() mutable {
      boost::asio::post(guard.get_executor(), [waiting, limits] {
        if (!waiting->value) waiting->timer.expires_after(limits.all);
      });
      const std::function<void()> slow = [&guard, waiting, limits] {
        boost::asio::post(guard.get_executor(), [waiting, limits] {
          const Instant end = waiting->timer.expiry();
          waiting->timer.expires_after(limits.slow);
          if (waiting->timer.expiry() > end) waiting->timer.expires_at(end);
        });
      };
      auto value = work(slow);
      boost::asio::post(guard.get_executor(),
                        [overdue, groups, group, waiting, value = std::move(value)]() mutable {
                          if (waiting->given_up) --*overdue;
                          waiting->value = std::move(value);
                          waiting->timer.cancel();
                          groups->end(group);
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
  const std::shared_ptr<Groups> groups_ = std::make_shared<Groups>();
  const int each_max_;  // threads that one group's work has at once
  boost::asio::thread_pool pool_;
};

}  // namespace flotilla::runner
