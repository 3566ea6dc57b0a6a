#include "cluster/dispatch.h"

#include <array>
#include <chrono>
#include <map>

#include <gtest/gtest.h>

#include "base/random.h"

namespace flotilla::cluster {
namespace {

using std::chrono::seconds;

struct DispatchTest : testing::Test {
  void open(std::uint32_t index, int places, bool slow = false, std::uint32_t generation = 1) {
    dispatcher.grow(index + 1);
    dispatcher.open({ReplicaIndex{index}, 1}, Generation{generation}, places, slow);
  }
  std::optional<std::uint32_t> take(std::uint64_t tokens = 10, Dispatcher::Wanted wanted = {}) {
    const std::optional<ReplicaIndex> index = dispatcher.least_busy(wanted, now);
    if (!index) return std::nullopt;
    dispatcher.reserve(*index, tokens);
    return static_cast<std::uint32_t>(*index);
  }
  void give(std::uint32_t index, Outcome outcome = Outcome::Completed, std::uint64_t tokens = 10) {
    dispatcher.release(ReplicaIndex{index}, tokens, outcome, now);
  }

  Instant now = Instant{} + std::chrono::hours(1);
  Dispatcher dispatcher;
};

TEST_F(DispatchTest, fewest_busy_first_and_never_more_than_the_places) {
  open(0, 2);
  open(1, 2);
  std::map<std::uint32_t, int> got;
  for (int i = 0; i < 4; ++i) ++got[take().value()];
  EXPECT_EQ(got[0], 2);
  EXPECT_EQ(got[1], 2);
  EXPECT_FALSE(take());
  give(1);
  EXPECT_EQ(take(), 1U);
}

TEST_F(DispatchTest, ties_go_by_outstanding_tokens_then_round_robin) {
  open(0, 4);
  open(1, 4);
  open(2, 4);
  const std::uint32_t first = take(100).value();
  const std::uint32_t second = take(10).value();
  const std::uint32_t third = take(50).value();
  EXPECT_EQ(take(10), second);
  EXPECT_EQ(take(10), third);
  EXPECT_EQ(take(10), first);
}

TEST_F(DispatchTest, an_idle_pool_is_used_in_turns_not_from_the_lowest_index) {
  open(0, 4);
  open(1, 4);
  open(2, 4);
  std::map<std::uint32_t, int> got;
  for (int i = 0; i < 9; ++i) {
    const std::uint32_t index = take().value();
    ++got[index];
    give(index);
  }
  EXPECT_EQ(got[0], 3);
  EXPECT_EQ(got[1], 3);
  EXPECT_EQ(got[2], 3);
}

TEST_F(DispatchTest, the_tie_break_picks_the_same_replica_among_equals) {
  for (std::uint32_t i = 0; i < 5; ++i) open(i, 4);
  const std::uint32_t first = take(10, {.tie_break = 77}).value();
  give(first);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(take(10, {.tie_break = 77}), first);
    give(first);
  }
}

TEST_F(DispatchTest, one_that_came_back_has_one_place_then_two_then_four) {
  open(0, 10, true);
  for (const int places : {1, 2, 4, 8, 10}) {
    EXPECT_EQ(dispatcher.usable_places(ReplicaIndex{0}), places);
    ASSERT_TRUE(take());
    give(0);
  }
}

TEST_F(DispatchTest, one_that_fails_fast_rests_and_shrinks_so_it_is_no_black_hole) {
  open(0, 8);
  open(1, 8);
  int failed = 0;
  for (int i = 0; i < 1000; ++i) {  // ten a second; replica 0 fails each at once
    const std::uint32_t index = take().value();
    if (index == 0) ++failed;
    give(index, index == 0 ? Outcome::FailedBeforeFirstByte : Outcome::Completed);
    now += std::chrono::milliseconds(100);
  }
  EXPECT_GT(failed, 2);
  EXPECT_LT(failed, 50);
}

TEST_F(DispatchTest, a_request_of_its_own_fault_marks_nothing) {
  open(0, 8);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(take());
    give(0, Outcome::RequestFault);
  }
  EXPECT_EQ(dispatcher.usable_places(ReplicaIndex{0}), 8);
  EXPECT_EQ(dispatcher.failures_in_a_row(ReplicaIndex{0}), 0U);
}

TEST_F(DispatchTest, exceptions_generations_and_draining_are_respected) {
  open(0, 8);
  open(1, 8, false, 2);
  const std::array except = {Launch{ReplicaIndex{0}, 1}};
  EXPECT_EQ(take(10, {.except = except}), 1U);
  EXPECT_EQ(take(10, {.generation = Generation{1}}), 0U);
  EXPECT_FALSE(dispatcher.any({.generation = Generation{1}, .except = except}));
  dispatcher.admit(ReplicaIndex{0}, Admit::Resumes);
  EXPECT_FALSE(take(10, {.generation = Generation{1}}));
  EXPECT_EQ(take(10, {.generation = Generation{1}, .admit = Admit::Resumes}), 0U);
  dispatcher.set_exclusive(ReplicaIndex{1}, true);
  EXPECT_FALSE(take());
}

TEST_F(DispatchTest, what_was_in_a_lost_launch_holds_no_place_of_the_next) {
  open(0, 2);
  (void)take();
  (void)take();
  dispatcher.lose(ReplicaIndex{0});
  EXPECT_FALSE(take());
  EXPECT_FALSE(dispatcher.is_current({ReplicaIndex{0}, 1}));
  dispatcher.open({ReplicaIndex{0}, 2}, Generation{1}, 2, false);
  EXPECT_TRUE(take());
  EXPECT_TRUE(take());
  EXPECT_FALSE(take());
}

TEST_F(DispatchTest, reserving_beyond_the_places_is_a_bug) {
  open(0, 1);
  (void)take();
  EXPECT_DEATH(dispatcher.reserve(ReplicaIndex{0}, 1), "CHECK|busy");
}

TEST_F(DispatchTest, choices_match_a_naive_model) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    Dispatcher fresh;
    std::map<std::uint32_t, std::pair<int, int>> model;  // busy, places
    const auto count = static_cast<std::uint32_t>(1 + random.below(6));
    fresh.grow(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      model[i] = {0, static_cast<int>(1 + random.below(5))};
      fresh.open({ReplicaIndex{i}, 1}, Generation{1}, model[i].second, false);
    }
    for (int step = 0; step < 300; ++step) {
      const auto at = static_cast<std::uint32_t>(random.below(count));
      if (random.chance(0.4) && model[at].first > 0) {
        fresh.release(ReplicaIndex{at}, 5, Outcome::Completed, now);
        --model[at].first;
        continue;
      }
      int least = INT32_MAX;
      for (const auto& [i, entry] : model) {
        if (entry.first < entry.second) least = std::min(least, entry.first);
      }
      const std::optional<ReplicaIndex> got = fresh.least_busy({}, now);
      ASSERT_EQ(got.has_value(), least != INT32_MAX);
      if (!got) continue;
      auto& entry = model[static_cast<std::uint32_t>(*got)];
      ASSERT_EQ(entry.first, least);
      ASSERT_LT(entry.first++, entry.second);
      fresh.reserve(*got, 5);
    }
  }
}

}  // namespace
}  // namespace flotilla::cluster
