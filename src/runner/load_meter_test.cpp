#include "runner/load_meter.h"

#include <gtest/gtest.h>

namespace flotilla::runner {
namespace {

using namespace std::chrono_literals;

TEST(LoadMeter, TheLongestStepIsRememberedForAMinuteAndNotForever) {
  ManualClock clock;
  LoadMeter meter;
  const auto step = [&](std::uint64_t number, double ms) {
    meter.add({.step = number, .step_ms = ms}, clock.now());
    return meter.event(0, clock.now()).step_ms_max;
  };
  EXPECT_EQ(step(1, 20), 20);
  EXPECT_EQ(step(2, 500), 500);
  clock.advance(25s);
  EXPECT_EQ(step(3, 20), 500);
  clock.advance(20s);
  EXPECT_EQ(step(4, 30), 500);
  clock.advance(40s);
  EXPECT_EQ(step(5, 10), 30);
  clock.advance(10min);
  EXPECT_EQ(step(6, 5), 5);
}

TEST(LoadMeter, TokensASecondFollowTheLastTwoSeconds) {
  ManualClock clock;
  LoadMeter meter;
  std::int64_t tokens = 0;
  double rate = 0;
  for (int i = 0; i < 50; ++i) {
    clock.advance(100ms);
    meter.add({.step = static_cast<std::uint64_t>(i), .tokens = tokens += 10}, clock.now());
    rate = meter.event(1, clock.now()).tokens_per_s;
  }
  EXPECT_NEAR(rate, 100, 1);
  for (int i = 0; i < 4; ++i) {
    clock.advance(1s);
    rate = meter.event(0, clock.now()).tokens_per_s;
  }
  EXPECT_EQ(rate, 0);
}

TEST(LoadMeter, OverheadIsTheStepsShareOutsideTheirPasses) {
  ManualClock clock;
  LoadMeter meter;
  double share = 0;
  for (int i = 1; i <= 50; ++i) {
    clock.advance(100ms);
    const double outside_ms = i < 25 ? 50.0 * i : 50.0 * 25 + 5.0 * (i - 25);
    meter.add({.step = static_cast<std::uint64_t>(i),
               .passes_ms = 95.0 * i,
               .outside_ms = outside_ms,
               .trims = i,
               .trimmed = "heap"},
              clock.now());
    const api::RunnerEvent event = meter.event(1, clock.now());
    share = event.step_overhead;
    EXPECT_EQ(event.trims, i);
    EXPECT_EQ(event.trimmed, "heap");
  }
  EXPECT_NEAR(share, 0.05, 1e-9);
}

TEST(LoadMeter, WhatTheSchedulerHasNotSeenWaits) {
  LoadMeter meter;
  meter.add({.step = 1, .running = 2, .waiting = 1, .parked = 1}, Instant{});
  EXPECT_EQ(meter.event(5, Instant{}).waiting, 2);
  EXPECT_EQ(meter.event(3, Instant{}).waiting, 0);
  EXPECT_EQ(meter.event(0, Instant{}).waiting, 0);
}

}  // namespace
}  // namespace flotilla::runner
