#include "runner/text_pool.h"

#include <latch>
#include <memory>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace flotilla::runner {
namespace {

using namespace std::chrono_literals;

class TextPoolTest : public testing::Test {
 protected:
  boost::asio::io_context io_{1};
  TextPool pool_{3};

  // The outcome of work within a limit: the loop runs until it is there.
  template <class Work>
  std::optional<int> within(Work work, Duration limit) {
    std::optional<int> out;
    bool done = false;
    boost::asio::co_spawn(io_, pool_.run_within(std::move(work), {.all = 600s, .slow = limit}),
                          [&](std::exception_ptr error, std::optional<int> value) {
                            EXPECT_FALSE(error);
                            out = value;
                            done = true;
                          });
    io_.restart();
    while (!done) io_.run_one();
    return out;
  }
};

TEST_F(TextPoolTest, WorkThatNeverGetsSlowHasNoLimit) {
  EXPECT_EQ(within([](const std::function<void()>&) { return 7; }, 0s), 7);
  EXPECT_EQ(pool_.overdue(), 0);
}

TEST_F(TextPoolTest, SlowWorkInTimeIsHeard) {
  EXPECT_EQ(within(
                [](const std::function<void()>& slow) {
                  slow();
                  return 8;
                },
                600s),
            8);
}

TEST_F(TextPoolTest, WorkBeyondItsLimitIsGivenUpAndKeepsItsThreadUntilItIsDone) {
  const auto go_on = std::make_shared<std::latch>(1);
  EXPECT_EQ(within(
                [go_on](const std::function<void()>& slow) {
                  slow();
                  go_on->wait();
                  return 9;
                },
                1ms),
            std::nullopt);
  EXPECT_EQ(pool_.overdue(), 1);
  // The other thread still works.
  EXPECT_EQ(within([](const std::function<void()>&) { return 1; }, 1ms), 1);
  go_on->count_down();
  io_.restart();
  while (pool_.overdue() > 0) io_.run_one();
  EXPECT_EQ(pool_.overdue(), 0);
}

TEST_F(TextPoolTest, AllWorkHasALimitWhateverItSays) {
  const auto go_on = std::make_shared<std::latch>(1);
  std::optional<int> out = 0;
  boost::asio::co_spawn(io_,
                        pool_.run_within(
                            [go_on](const std::function<void()>&) {
                              go_on->wait();
                              return 1;
                            },
                            {.all = 1ms, .slow = 600s}),
                        [&](std::exception_ptr, std::optional<int> value) { out = value; });
  while (out) io_.run_one();
  EXPECT_EQ(pool_.overdue(), 1);
  go_on->count_down();
  while (pool_.overdue() > 0) io_.run_one();
}

TEST_F(TextPoolTest, OneGroupsWorkNeverHasAllOfTheThreads) {
  const auto go_on = std::make_shared<std::latch>(1);
  const auto wait = [go_on](const std::function<void()>&) {
    go_on->wait();
    return 1;
  };
  int theirs = 0;
  const TextPool::Limits limits{.all = 600s, .slow = 600s};
  for (int i = 0; i < 5; ++i) {
    boost::asio::co_spawn(io_, pool_.run_within(wait, limits, "theirs"),
                          [&](std::exception_ptr, std::optional<int>) { ++theirs; });
  }
  // Another group's comes to its turn before any of these is done.
  std::optional<int> ours;
  boost::asio::co_spawn(
      io_, pool_.run_within([](const std::function<void()>&) { return 2; }, limits, "ours"),
      [&](std::exception_ptr, std::optional<int> value) { ours = value; });
  for (int i = 0; i < 10'000 && !ours; ++i) io_.run_one_for(1ms);
  EXPECT_EQ(ours, 2);
  EXPECT_EQ(theirs, 0);
  go_on->count_down();
  while (theirs < 5) io_.run_one();
}

}  // namespace
}  // namespace flotilla::runner
