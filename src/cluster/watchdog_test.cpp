#include "cluster/watchdog.h"

#include <chrono>

#include <gtest/gtest.h>

namespace flotilla::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct WatchdogTest : testing::Test {
  WatchdogTest() { dog.start(false, now); }
  void beat(std::uint64_t step, int running, Duration longest = milliseconds(50)) {
    dog.beat({.step = step, .step_max = longest, .running = running}, now);
  }
  void pass(Duration by) { now += by; }
  bool hung(bool busy) const { return dog.check(busy, now).has_value(); }

  Instant now = Instant{} + std::chrono::hours(1);
  Watchdog dog{seconds(30)};
};

TEST_F(WatchdogTest, a_step_that_stands_still_while_work_waits_is_a_hang_after_5_s) {
  beat(7, 1);
  for (int i = 0; i < 5; ++i) {
    pass(seconds(1));
    beat(7, 1);
    EXPECT_FALSE(hung(true)) << i;
  }
  pass(seconds(1));
  beat(7, 1);
  EXPECT_TRUE(hung(true));
}

TEST_F(WatchdogTest, steps_that_go_on_or_no_work_are_no_hang) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    pass(seconds(1));
    beat(i, 1);
    EXPECT_FALSE(hung(true));
  }
  for (int i = 0; i < 100; ++i) {  // all its requests are parked by slow readers
    pass(seconds(1));
    beat(99, 0);
    EXPECT_FALSE(hung(true));
  }
}

TEST_F(WatchdogTest, work_that_comes_after_a_long_rest_starts_the_clock_anew) {
  beat(3, 0);
  pass(seconds(1));
  beat(3, 0);
  pass(seconds(1));
  beat(3, 1);
  pass(seconds(4));
  beat(3, 1);
  EXPECT_FALSE(hung(true));
}

TEST_F(WatchdogTest, long_steps_of_the_last_minute_stretch_the_limit) {
  beat(1, 1, seconds(2));
  EXPECT_EQ(dog.limit(now), seconds(40));
  pass(seconds(50));
  EXPECT_EQ(dog.limit(now), seconds(40));
  pass(seconds(30));
  EXPECT_EQ(dog.limit(now), seconds(5));
}

TEST_F(WatchdogTest, silence_with_requests_in_it_is_a_hang_from_when_they_came) {
  beat(1, 0);
  pass(seconds(10));  // silent, idle
  EXPECT_FALSE(hung(false));
  dog.work_began(now);
  pass(seconds(5));
  EXPECT_FALSE(hung(true));
  pass(seconds(1));
  EXPECT_TRUE(hung(true));
}

TEST_F(WatchdogTest, silence_of_30_s_is_a_hang_even_when_idle) {
  pass(seconds(30));
  EXPECT_FALSE(hung(false));
  pass(seconds(1));
  EXPECT_TRUE(hung(false));
}

TEST_F(WatchdogTest, a_foreign_engine_is_judged_by_silence_alone) {
  dog.start(true, now);
  beat(1, 1);
  pass(seconds(29));
  EXPECT_FALSE(hung(true));
  pass(seconds(2));
  EXPECT_TRUE(hung(true));
}

TEST_F(WatchdogTest, time_in_which_the_gateway_stood_still_does_not_count) {
  beat(1, 1);
  pass(seconds(100));
  dog.forgive(seconds(99));
  EXPECT_FALSE(hung(true));
}

}  // namespace
}  // namespace flotilla::cluster
