#include "batch/step_plan.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "batch/test_seeds.h"

namespace flotilla::batch {
namespace {

StepRow decode(int slot) { return {.slot = slot, .pending = 1, .decoding = true, .token_ms = 1}; }
StepRow prompt(int slot, int pending, std::uint64_t order) {
  return {.slot = slot, .pending = pending, .order = order, .token_ms = 1};
}
StepRules rules(double ms) {
  return {.step_tokens_max = 512, .prefill_batch = 4, .room = {.ms = ms, .tokens = 512}};
}

TEST(StepPlan, decodes_first_and_fills_the_room_with_prefill) {
  std::vector<StepRow> rows = {decode(0), decode(1), prompt(2, 1000, 0)};
  divide_step(rows, rules(48));
  EXPECT_EQ(rows[0].tokens, 1);
  EXPECT_EQ(rows[1].tokens, 1);
  EXPECT_EQ(rows[2].tokens, 48);
}

TEST(StepPlan, a_lone_prompt_takes_all_that_may_be_computed_before_somebody_else_is_heard) {
  const auto tokens_at = [](double token_ms) {
    std::vector<StepRow> rows = {prompt(0, 1000, 0)};
    rows[0].token_ms = token_ms;
    divide_step(rows, rules(10));
    return rows[0].tokens;
  };
  EXPECT_EQ(tokens_at(1), 512);
  EXPECT_EQ(tokens_at(2), 256);  // of 300, whole tiles
  EXPECT_EQ(tokens_at(50), 64);
  EXPECT_EQ(tokens_at(0), 512);  // not known yet
}

TEST(StepPlan, the_shortest_goes_first_and_the_oldest_has_a_quarter) {
  std::vector<StepRow> rows = {decode(0), prompt(1, 1000, 0), prompt(2, 300, 2), prompt(3, 20, 1)};
  divide_step(rows, rules(40));
  EXPECT_EQ(rows[1].tokens, 10);
  EXPECT_EQ(rows[2].tokens, 10);
  EXPECT_EQ(rows[3].tokens, 20);
}

TEST(StepPlan, a_share_below_one_token_is_saved_up) {
  double credit = 0;
  int oldest = 0;
  for (int pass = 0; pass < 100; ++pass) {
    std::vector<StepRow> rows = {decode(0), prompt(1, 1000, 0), prompt(2, 300, 1)};
    StepRules one = rules(1);
    one.oldest_credit = credit;
    credit = divide_step(rows, one);
    EXPECT_EQ(rows[1].tokens + rows[2].tokens, 1);
    oldest += rows[1].tokens;
  }
  EXPECT_EQ(oldest, 25);
}

TEST(StepPlan, the_oldest_has_its_quarter_even_where_no_token_fits) {
  double credit = 0;
  int oldest = 0;
  for (int pass = 0; pass < 100; ++pass) {
    std::vector<StepRow> rows = {decode(0), prompt(1, 1000, 0), prompt(2, 300, 1)};
    StepRules none = rules(0.1);
    none.oldest_credit = credit;
    credit = divide_step(rows, none);
    EXPECT_EQ(rows[1].tokens + rows[2].tokens, 1);
    oldest += rows[1].tokens;
  }
  EXPECT_EQ(oldest, 25);
}

TEST(StepPlan, one_prompt_a_pass_gives_the_oldest_every_fourth) {
  double credit = 0;
  int oldest = 0;
  for (int pass = 0; pass < 100; ++pass) {
    std::vector<StepRow> rows = {decode(0), prompt(1, 9000, 0), prompt(2, 8000, 1)};
    StepRules alone = rules(40);
    alone.prefill_batch = 1;
    alone.oldest_credit = credit;
    credit = divide_step(rows, alone);
    EXPECT_TRUE(rows[1].tokens == 0 || rows[2].tokens == 0);
    oldest += rows[1].tokens > 0 ? 1 : 0;
  }
  EXPECT_EQ(oldest, 25);
}

TEST(StepPlan, a_pass_that_ends_a_prompt_is_held_to_the_target) {
  std::vector<StepRow> rows = {prompt(0, 30, 1), prompt(1, 4000, 0)};
  divide_step(rows, rules(50));
  EXPECT_EQ(rows[0].tokens, 30);
  EXPECT_LE(rows[1].tokens, 20);
  EXPECT_GE(rows[1].tokens, 12);
}

TEST(StepPlan, prompts_between_decoding_slots_fill_the_gap) {
  std::vector<StepRow> rows = {decode(0), prompt(1, 900, 3), prompt(2, 800, 2), decode(3),
                               prompt(4, 700, 1)};
  StepRules one = rules(40);
  one.prefill_batch = 1;
  divide_step(rows, one);
  EXPECT_EQ(rows[1].tokens, 1);
  EXPECT_EQ(rows[2].tokens, 1);
  EXPECT_GT(rows[4].tokens, 30);
}

TEST(StepPlan, a_pass_that_measures_decoding_holds_no_prefill) {
  std::vector<StepRow> rows = {decode(0), prompt(1, 900, 0)};
  StepRules alone = rules(40);
  alone.decode_alone = true;
  divide_step(rows, alone);
  EXPECT_EQ(rows[1].tokens, 0);
  rows.erase(rows.begin());  // without decoding there is nothing to measure
  divide_step(rows, alone);
  EXPECT_GT(rows[0].tokens, 0);
}

TEST(StepPlan, laws_of_any_division) {
  for_each_seed(5000, [](Random& random) {
    const int width = 1 + static_cast<int>(random.below(64));
    StepRules any{
        .step_tokens_max = width + static_cast<int>(random.below(500)),
        .prefill_batch = 1 + static_cast<int>(random.below(6)),
        .room = {.ms = random.uniform() * 100, .tokens = 1 + static_cast<int>(random.below(500))},
        .oldest_credit = random.uniform() * 20};
    std::vector<StepRow> rows;
    for (int slot = 0; slot < width; ++slot) {
      if (random.chance(0.2)) continue;
      rows.push_back(random.chance(0.5)
                         ? decode(slot)
                         : prompt(slot, 1 + static_cast<int>(random.below(2000)), random.next()));
      rows.back().token_ms = random.chance(0.1) ? 0 : random.uniform() * 3;
    }
    if (rows.empty()) return;
    const double credit = divide_step(rows, any);
    EXPECT_GE(credit, 0);
    int total = 0, prefill = 0, prompts = 0, large = 0, decoding = 0;
    double ms = 0;
    for (const StepRow& row : rows) {
      EXPECT_GE(row.tokens, row.decoding ? 1 : 0);
      EXPECT_LE(row.tokens, row.pending);
      total += row.tokens;
      decoding += row.decoding ? 1 : 0;
      if (row.decoding) continue;
      ++prompts;
      prefill += row.tokens;
      ms += row.tokens * row.token_ms;
      large += row.tokens > 1 ? 1 : 0;
    }
    EXPECT_LE(total, any.step_tokens_max);
    EXPECT_LE(large, any.prefill_batch);
    if (prompts > 0 && total < any.step_tokens_max) {
      EXPECT_GE(prefill, 1);
    }
    if (decoding > 0 && prefill > 1) {
      EXPECT_LE(ms, any.room.ms + 1e-6);
    }
  });
}

TEST(DivideWhole, PromptsAreWholeAndTheOldestIsAmongThem) {
  std::vector<StepRow> rows(4);
  const int pending[] = {30, 60, 20, 50};
  for (int i = 0; i < 4; ++i) {
    rows[i].pending = pending[i];
    rows[i].order = 10 - i;
  }
  divide_whole(rows, 100);
  EXPECT_EQ(rows[3].tokens, 50);
  EXPECT_EQ(rows[2].tokens, 20);
  EXPECT_EQ(rows[1].tokens, 0) << "it does not fit beside older ones";
  EXPECT_EQ(rows[0].tokens, 30);
}

}  // namespace
}  // namespace flotilla::batch
