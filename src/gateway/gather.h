#pragma once

#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/task.h"

namespace flotilla::gateway {

// Does all of them at once and answers, in their order, when the last has answered. T() takes the
// place of one that threw.
template <class T>
Awaitable<std::vector<T>> gather(Executor executor, std::vector<Awaitable<T>> works) {
  struct State {
    explicit State(const Executor& on)
        : all_answered(on, boost::asio::steady_timer::time_point::max()) {}
    std::vector<T> answers;
    std::size_t missing = 0;
    boost::asio::steady_timer all_answered;
  };
  const auto state = std::make_shared<State>(executor);
  state->answers.resize(works.size());
  state->missing = works.size();
  for (std::size_t i = 0; i < works.size(); ++i) {
    boost::asio::co_spawn(executor, std::move(works[i]),
                          [state, i](std::exception_ptr thrown, T answer) {
                            if (!thrown) state->answers[i] = std::move(answer);
                            if (--state->missing == 0) state->all_answered.cancel();
                          });
  }
  while (state->missing > 0) co_await state->all_answered.async_wait(kAwait);
  co_return std::move(state->answers);
}

}  // namespace flotilla::gateway
