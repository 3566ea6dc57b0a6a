#include "cluster/replica.h"

#include <chrono>

#include <gtest/gtest.h>

namespace flotilla::cluster {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct ReplicaTest : testing::Test {
  void up() {
    ASSERT_TRUE(replica.begin(Link::Up, now).start);
    ready();
  }
  void ready() { EXPECT_TRUE(replica.on_ready({.width = 8}, now).changed); }
  ReplicaEffects fail() { return replica.on_failed("killed by signal 9", false, random, now); }
  ReplicaEffects tick() { return replica.tick(false, random, now); }
  // A heartbeat each second.
  void live_for(Duration time) {
    for (Duration passed{}; passed < time; passed += seconds(1)) {
      now += seconds(1);
      replica.on_heartbeat({.step = ++step}, now);
      EXPECT_FALSE(tick().changed);
    }
  }
  // Seconds until the next attempt, seen in steps of 100 ms.
  double wait_for_start() {
    const Instant from = now;
    while (!tick().start) {
      now += milliseconds(100);
      if (now - from > hours(1)) return -1;
    }
    return to_s(now - from);
  }

  Random random{3};
  Instant now = Instant{} + hours(1);
  std::uint64_t step = 0;
  Replica replica{Launch{}, NodeId("a"), Generation{1}, HealSettings{}};
};

TEST_F(ReplicaTest, a_stable_one_is_started_again_at_once) {
  up();
  live_for(seconds(60));
  const ReplicaEffects effects = fail();
  EXPECT_EQ(effects.drop, 1U);
  EXPECT_EQ(effects.start, 2U);
  EXPECT_FALSE(effects.stop);
}

TEST_F(ReplicaTest, after_one_immediate_attempt_pauses_double_without_limit) {
  up();
  live_for(seconds(61));
  EXPECT_TRUE(fail().start);
  for (const double expected : {30, 60, 120, 240, 300, 300, 300, 300}) {
    const ReplicaEffects effects = fail();
    EXPECT_FALSE(effects.start);
    EXPECT_EQ(replica.state(), ReplicaState::Waiting);
    const double waited = wait_for_start();
    EXPECT_GE(waited, expected);
    EXPECT_LE(waited, expected * 1.1 + 0.1);
  }
}

TEST_F(ReplicaTest, one_that_was_ready_only_shortly_backs_off_further) {
  up();
  live_for(seconds(10));
  EXPECT_FALSE(fail().start);
  EXPECT_LE(wait_for_start(), 33.1);
  ready();
  live_for(seconds(10));
  EXPECT_FALSE(fail().start);
  EXPECT_GE(wait_for_start(), 60);
}

TEST_F(ReplicaTest, away_for_an_hour_does_not_grow_the_backoff_and_starts_when_back) {
  up();
  const ReplicaEffects lost = replica.on_node_lost("link silent for 15 s", now);
  EXPECT_EQ(lost.drop, 1U);
  EXPECT_FALSE(lost.stop);
  EXPECT_TRUE(replica.status(now).node_away);
  EXPECT_EQ(replica.next_due(), Instant::max());
  now += hours(1);
  EXPECT_FALSE(tick().changed);
  EXPECT_EQ(replica.on_node_back(now).start, 2U);
  EXPECT_FALSE(fail().start);
  EXPECT_LE(wait_for_start(), 33.1);
}

TEST_F(ReplicaTest, back_from_away_does_not_wait_for_an_old_backoff) {
  EXPECT_TRUE(replica.begin(Link::Up, now).start);
  (void)fail();
  (void)replica.on_node_lost("rebooted", now);
  EXPECT_TRUE(replica.on_node_back(now).start);
  EXPECT_FALSE(replica.on_node_back(now).start);
}

TEST_F(ReplicaTest, an_attempt_is_capped_but_not_while_bytes_grow) {
  EXPECT_TRUE(replica.begin(Link::Up, now).start);
  for (int i = 1; i <= 2000; ++i) {
    now += seconds(1);
    (void)replica.on_loading(static_cast<std::uint64_t>(i), 10'000, now);
    ASSERT_FALSE(tick().stop) << i;
  }
  now += seconds(119);
  EXPECT_FALSE(tick().stop);
  EXPECT_FALSE(replica.status(now).stalled);
  now += seconds(1);
  EXPECT_TRUE(replica.status(now).stalled);
  EXPECT_EQ(tick().stop, 1U);
  EXPECT_EQ(replica.state(), ReplicaState::Waiting);
}

TEST_F(ReplicaTest, without_a_byte_an_attempt_ends_after_the_timeout) {
  EXPECT_TRUE(replica.begin(Link::Up, now).start);
  now += seconds(899);
  EXPECT_FALSE(tick().stop);
  now += seconds(1);
  EXPECT_TRUE(tick().stop);
}

TEST_F(ReplicaTest, a_hang_is_stopped_dropped_and_started_anew) {
  up();
  live_for(seconds(60));
  now += seconds(6);
  const ReplicaEffects effects = replica.tick(true, random, now);
  EXPECT_EQ(effects.drop, 1U);
  EXPECT_EQ(effects.stop, 1U);
  EXPECT_EQ(effects.start, 2U);
  EXPECT_NE(replica.last_error().find("hang"), std::string::npos);
}

TEST_F(ReplicaTest, drained_for_removal_it_stops_when_idle_or_when_time_is_over) {
  up();
  EXPECT_TRUE(replica.drain(AfterDrain::Remove, false, now).changed);
  EXPECT_EQ(replica.state(), ReplicaState::Draining);
  EXPECT_TRUE(replica.live());
  const ReplicaEffects effects = replica.on_idle(now);
  EXPECT_EQ(effects.stop, 1U);
  EXPECT_EQ(replica.state(), ReplicaState::Stopped);
  EXPECT_FALSE(replica.on_node_back(now).start);

  Replica slow{Launch{}, NodeId("b"), Generation{1}, HealSettings{}};
  (void)slow.begin(Link::Up, now);
  (void)slow.on_ready({}, now);
  (void)slow.drain(AfterDrain::Remove, false, now);
  for (int i = 0; i < 120; ++i) {
    now += seconds(1);
    slow.on_heartbeat({.step = ++step}, now);
    if (i < 119) {
      EXPECT_FALSE(slow.tick(true, random, now).stop) << i;
    }
  }
  EXPECT_EQ(slow.tick(true, random, now).stop, 1U);
}

TEST_F(ReplicaTest, held_it_stays_loaded_until_resumed_and_through_a_crash) {
  up();
  (void)replica.drain(AfterDrain::Hold, false, now);
  EXPECT_FALSE(replica.on_idle(now).changed);
  (void)fail();
  (void)wait_for_start();
  ready();
  EXPECT_EQ(replica.state(), ReplicaState::Draining);
  (void)replica.resume(now);
  EXPECT_EQ(replica.state(), ReplicaState::Ready);
}

TEST_F(ReplicaTest, hold_drops_nothing_even_when_forced_and_tells_that_it_drains) {
  up();
  const ReplicaEffects effects = replica.drain(AfterDrain::Hold, true, now);
  EXPECT_TRUE(effects.changed);
  EXPECT_FALSE(effects.drop);
  EXPECT_EQ(replica.state(), ReplicaState::Draining);
}

TEST_F(ReplicaTest, held_while_it_loads_it_has_nothing_due_once_it_is_ready) {
  up();
  (void)replica.drain(AfterDrain::Restart, false, now);
  (void)replica.on_idle(now);
  (void)replica.drain(AfterDrain::Hold, false, now);
  ready();
  EXPECT_EQ(replica.state(), ReplicaState::Draining);
  EXPECT_EQ(replica.next_due(), Instant::max());
}

TEST_F(ReplicaTest, restart_drains_then_launches_afresh) {
  up();
  (void)replica.drain(AfterDrain::Restart, false, now);
  const ReplicaEffects effects = replica.on_idle(now);
  EXPECT_EQ(effects.stop, 1U);
  EXPECT_EQ(effects.start, 2U);
  ready();
  EXPECT_EQ(replica.state(), ReplicaState::Ready);
  EXPECT_EQ(replica.status(now).restarts, 1U);
}

TEST_F(ReplicaTest, adopted_it_is_ready_without_a_start) {
  (void)replica.begin(Link::Connecting, now);
  EXPECT_EQ(replica.next_due(), Instant::max());
  const ReplicaEffects effects = replica.adopt({.width = 4}, now);
  EXPECT_FALSE(effects.start);
  EXPECT_EQ(replica.state(), ReplicaState::Ready);
  EXPECT_EQ(replica.status(now).restarts, 0U);
}

TEST_F(ReplicaTest, a_mishap_is_tried_again_at_once_and_no_attempt_but_the_fourth_is_a_failure) {
  (void)replica.begin(Link::Up, now);
  for (std::uint32_t launch = 2; launch <= 4; ++launch) {
    const ReplicaEffects effects = replica.on_mishap("its port was taken", random, now);
    EXPECT_EQ(effects.start, launch);
    EXPECT_FALSE(effects.drop || effects.stop);
    EXPECT_FALSE(replica.status(now).first_attempt_over);
    EXPECT_EQ(replica.status(now).last_error, "its port was taken");
  }
  EXPECT_FALSE(replica.on_mishap("its port was taken", random, now).start);
  EXPECT_TRUE(replica.status(now).first_attempt_over);
  EXPECT_GE(wait_for_start(), 30);
  ready();
  const ReplicaEffects lost = replica.on_mishap("its port was taken", random, now);
  EXPECT_EQ(lost.drop, 5U) << "what was in it is told";
  EXPECT_FALSE(lost.start);
}

TEST_F(ReplicaTest, a_mishap_of_one_that_is_taken_out_starts_nothing) {
  (void)replica.begin(Link::Up, now);
  (void)replica.drain(AfterDrain::Remove, false, now);
  EXPECT_FALSE(replica.on_mishap("its port was taken", random, now).changed);
  EXPECT_EQ(replica.state(), ReplicaState::Stopped);
}

TEST_F(ReplicaTest, a_late_ready_of_an_attempt_given_up_changes_nothing) {
  EXPECT_TRUE(replica.begin(Link::Up, now).start);
  (void)fail();
  EXPECT_FALSE(replica.on_ready({}, now).changed);
  EXPECT_EQ(replica.state(), ReplicaState::Waiting);
  EXPECT_TRUE(replica.status(now).first_attempt_over);
  EXPECT_TRUE(replica.status(now).next_retry);
}

}  // namespace
}  // namespace flotilla::cluster
