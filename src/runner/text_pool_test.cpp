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
  TextPool pool_{2};

  // The outcome of work within a limit: the loop runs until it is there.
  template <class Work>
  std::optional<int> within(Work work, Duration limit) {
    std::optional<int> out;
    bool done = false;
    boost::asio::co_spawn(io_, pool_.run_within(std::move(work), limit),
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

}  // namespace
}  // namespace flotilla::runner
