#include "batch/step_cost.h"

#include <vector>

#include <gtest/gtest.h>

#include "batch/test_seeds.h"

namespace flotilla::batch {
namespace {

Duration ms(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(value));
}

// Tokens that one prompt at `pos` gets beside `decoding` sequences.
int chunk(const StepCost& cost, int decoding, int pos) {
  const PrefillRoom room = cost.room(decoding);
  const double each = cost.token_ms(pos);
  const int fits = each > 0 ? static_cast<int>(room.ms / each) : room.tokens;
  return std::max(1, std::min(room.tokens, fits));
}

TEST(RecentMedian, ignores_hiccups_and_follows_changes) {
  RecentMedian median;
  for (int i = 0; i < 7; ++i) median.add(10);
  median.add(500);
  median.add(500);
  EXPECT_EQ(median.get(), 10);
  for (int i = 0; i < 4; ++i) median.add(20);
  EXPECT_EQ(median.get(), 20);
  median.add(30);
  median.keep_newest(2);  // 20, 30
  EXPECT_EQ(median.count(), 2);
  median.add(30);
  EXPECT_EQ(median.get(), 30);
}

TEST(StepCost, the_target_is_50_ms_or_2_7_decode_only_passes) {
  StepCost cost(Duration{}, 512);
  EXPECT_EQ(cost.target_ms(4), 50);
  cost.observe(4, {}, ms(10));
  EXPECT_EQ(cost.target_ms(4), 50);
  for (int i = 0; i < 7; ++i) cost.observe(4, {}, ms(100));
  EXPECT_NEAR(cost.target_ms(4), 270, 1e-9);
}

TEST(StepCost, a_set_target_below_the_decode_cost_still_prefills) {
  StepCost cost(ms(10), 512);
  cost.observe(4, {}, ms(40));
  EXPECT_NEAR(cost.target_ms(4), 50, 1e-9);
  EXPECT_GT(cost.room(4).ms, 0);
}

TEST(StepCost, decode_cost_is_measured_alone_when_unknown_or_old) {
  StepCost cost(Duration{}, 512);
  EXPECT_FALSE(cost.wants_decode_alone(0));
  EXPECT_TRUE(cost.wants_decode_alone(4));
  for (const double hiccup : {1000, 0, 0}) {
    EXPECT_TRUE(cost.wants_decode_alone(4));
    cost.observe(4, {}, ms(10 + hiccup));
  }
  EXPECT_FALSE(cost.wants_decode_alone(4));
  EXPECT_EQ(cost.decode_ms(4), 10);
  EXPECT_TRUE(cost.wants_decode_alone(8));
  const PrefillRun run{.pos = 0, .tokens = 8};
  int passes = 0;
  while (!cost.wants_decode_alone(4)) {
    cost.observe(4, std::span(&run, 1), ms(20));
    ASSERT_LE(++passes, 100);
  }
  EXPECT_GE(passes, 16);
}

TEST(StepCost, an_old_decode_cost_follows_two_measurements_that_agree) {
  StepCost cost(Duration{}, 512);
  const PrefillRun run{.pos = 0, .tokens = 8};
  const auto grow_old = [&] {
    for (int i = 0; i < 40; ++i) cost.observe(4, std::span(&run, 1), ms(200));
    ASSERT_TRUE(cost.wants_decode_alone(4));
    cost.observe(4, {}, ms(5000));  // the first after other passes does not count
    EXPECT_TRUE(cost.wants_decode_alone(4));
  };
  for (int i = 0; i < 7; ++i) cost.observe(4, {}, ms(100));
  grow_old();
  cost.observe(4, {}, ms(900));  // a hiccup?
  EXPECT_EQ(cost.decode_ms(4), 100);
  EXPECT_TRUE(cost.wants_decode_alone(4));
  cost.observe(4, {}, ms(100));
  EXPECT_FALSE(cost.wants_decode_alone(4));
  EXPECT_EQ(cost.decode_ms(4), 100);
  grow_old();
  cost.observe(4, {}, ms(50));
  cost.observe(4, {}, ms(52));  // a change
  EXPECT_FALSE(cost.wants_decode_alone(4));
  EXPECT_NEAR(cost.decode_ms(4), 52, 1e-9);
}

TEST(StepCost, a_change_of_speed_makes_all_decode_costs_old) {
  StepCost cost(Duration{}, 512);
  for (int i = 0; i < 7; ++i) cost.observe(2, {}, ms(100));
  for (int i = 0; i < 8; ++i) cost.observe(4, {}, ms(110));
  for (int i = 0; i < 3; ++i) cost.observe(4, {}, ms(50));
  EXPECT_FALSE(cost.wants_decode_alone(2));
  cost.observe(4, {}, ms(50));
  EXPECT_TRUE(cost.wants_decode_alone(2));
  for (int i = 0; i < 3; ++i) cost.observe(2, {}, ms(45));
  EXPECT_FALSE(cost.wants_decode_alone(2));
  EXPECT_EQ(cost.decode_ms(2), 45);
}

TEST(StepCost, prefill_over_several_octaves_is_the_sum_of_its_parts) {
  StepCost cost(Duration{}, 512);
  const PrefillRun shallow{.pos = 0, .tokens = 100};
  const PrefillRun deep{.pos = 600, .tokens = 100};
  cost.observe(0, std::span(&shallow, 1), ms(100));
  cost.observe(0, std::span(&deep, 1), ms(200));
  EXPECT_NEAR(cost.token_ms(0), 1, 1e-9);
  EXPECT_NEAR(cost.token_ms(600), 2, 1e-9);
  EXPECT_NEAR(cost.prefill_ms({.pos = 500, .tokens = 24}), 12 * 1 + 12 * 2, 1e-9);
}

TEST(StepCost, a_deep_token_costs_at_least_what_a_shallow_one_does) {
  StepCost cost(Duration{}, 512);
  const PrefillRun shallow{.pos = 0, .tokens = 100};
  const PrefillRun deep{.pos = 600, .tokens = 100};
  cost.observe(0, std::span(&deep, 1), ms(100));
  for (int i = 0; i < 7; ++i) cost.observe(0, std::span(&shallow, 1), ms(300));
  EXPECT_NEAR(cost.token_ms(600), 3, 1e-9);
}

// A machine: pass = decode + tokens x (flat + slope x position), with noise and hiccups.
struct Machine {
  double decode = 5;
  double flat = 0.1;
  double slope = 0;

  double ms(int decoding, int pos, int tokens) const {
    double sum = decoding > 0 ? decode * (1 + 0.03 * decoding) : 0;
    for (int i = 0; i < tokens; ++i) sum += flat + slope * (pos + i);
    return sum;
  }
};

Machine any_machine(Random& random) {
  Machine machine;
  machine.decode = 2 + random.uniform() * 80;
  machine.flat = machine.decode * (0.002 + 0.5 * random.uniform());
  machine.slope = machine.flat * random.uniform() / 2000;
  return machine;
}

TEST(StepCost, chunks_grow_to_the_target_and_never_far_beyond) {
  for_each_seed(300, [](Random& random) {
    const Machine machine = any_machine(random);
    StepCost cost(Duration{}, 512);
    const int decoding = 1 + static_cast<int>(random.below(16));
    int pos = 0;
    for (int pass = 0; pass < 400 && pos < 8000; ++pass) {
      if (cost.wants_decode_alone(decoding)) {
        cost.observe(decoding, {}, ms(machine.ms(decoding, 0, 0)));
        continue;
      }
      const PrefillRun run{.pos = pos, .tokens = chunk(cost, decoding, pos)};
      const double took = machine.ms(decoding, pos, run.tokens);
      const double target = cost.target_ms(decoding);
      const double token = machine.ms(0, pos, 1);
      ASSERT_LE(took, 1.25 * target + token) << "pass " << pass << " pos " << pos;
      if (pass > 20 && run.tokens < 512) {
        ASSERT_GE(took, 0.5 * target - token) << "pass " << pass;
      }
      cost.observe(decoding, std::span(&run, 1), ms(took));
      pos += run.tokens;
    }
  });
}

TEST(StepCost, a_hiccup_costs_a_few_small_chunks) {
  StepCost cost(Duration{}, 512);
  const Machine machine;
  const auto pass = [&](double hiccup) {
    while (cost.wants_decode_alone(4)) cost.observe(4, {}, ms(machine.ms(4, 0, 0)));
    const PrefillRun run{.pos = 0, .tokens = chunk(cost, 4, 0)};
    cost.observe(4, std::span(&run, 1), ms(machine.ms(4, 0, run.tokens) + hiccup));
    return run.tokens;
  };
  int steady = 0;
  for (int i = 0; i < 30; ++i) steady = pass(0);
  pass(1000);
  EXPECT_LT(pass(0), steady);
  for (int i = 0; i < 3; ++i) pass(0);
  EXPECT_GE(pass(0), steady * 9 / 10);
}

TEST(StepCost, chunks_shrink_within_passes_when_the_machine_slows_down) {
  StepCost cost(Duration{}, 512);
  Machine machine;
  int passes = 0;
  for (int i = 0; i < 60; ++i) {
    if (i == 40) machine = {.decode = 15, .flat = 0.3, .slope = 0};
    while (cost.wants_decode_alone(4)) cost.observe(4, {}, ms(machine.ms(4, 0, 0)));
    const PrefillRun run{.pos = 0, .tokens = chunk(cost, 4, 0)};
    const double took = machine.ms(4, 0, run.tokens);
    cost.observe(4, std::span(&run, 1), ms(took));
    passes += took > 1.25 * cost.target_ms(4) ? 1 : 0;
  }
  EXPECT_LE(passes, 4);
}

TEST(StepCost, a_drafts_cost_is_known_after_three_passes_and_told_apart_from_decoding) {
  StepCost cost(Duration{}, 512);
  while (cost.wants_decode_alone(1)) cost.observe(1, {}, ms(5));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cost.draft_ms(1), 0);
    cost.observe_drafts(1, 4 + i, ms(5 + 0.5 * (4 + i)));
  }
  EXPECT_NEAR(cost.draft_ms(1), 0.5, 1e-6);
  EXPECT_NEAR(cost.decode_ms(1), 5, 1e-6);
  EXPECT_EQ(cost.draft_ms(8), 0);
}

TEST(StepCost, decoding_is_measured_among_drafts_and_drafts_among_plain_passes) {
  StepCost cost(Duration{}, 512);
  while (cost.wants_decode_alone(1)) cost.observe(1, {}, ms(5));
  int drafts = 0;
  for (; !cost.wants_decode_alone(1); ++drafts) {
    ASSERT_LT(drafts, 1000);
    cost.observe_drafts(1, 4, ms(7));
  }
  EXPECT_GE(drafts, 100);
  int plain = 0;
  for (; cost.wants_decode_alone(1); ++plain) {
    ASSERT_LT(plain, 10);
    cost.observe(1, {}, ms(5));
  }
  for (int i = 0; i < 600; ++i) cost.observe(1, {}, ms(5));
  EXPECT_EQ(cost.draft_ms(1), 0) << "old: it is measured anew";
  cost.observe_drafts(1, 4, ms(7));
  EXPECT_GT(cost.draft_ms(1), 0);
}

}  // namespace
}  // namespace flotilla::batch
