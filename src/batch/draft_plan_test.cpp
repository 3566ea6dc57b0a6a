#include "batch/draft_plan.h"

#include <vector>

#include <gtest/gtest.h>

#include "batch/test_seeds.h"

namespace flotilla::batch {
namespace {

int drafted(double rate, const DraftRules& rules, int most = 16) {
  DraftRow row{.rate = rate, .most = most};
  divide_drafts(std::span(&row, 1), rules);
  return row.tokens;
}

constexpr DraftRules kAlone{.decoding = 1, .decode_ms = 5, .draft_ms = 0.75, .tokens_max = 16};

TEST(DraftPlan, what_is_likely_is_drafted_far_and_what_is_not_is_left) {
  EXPECT_EQ(drafted(1, kAlone), 16);
  EXPECT_GT(drafted(0.8, kAlone), 2);
  EXPECT_LT(drafted(0.8, kAlone), 16);
  EXPECT_EQ(drafted(0.1, kAlone), 0);
  EXPECT_EQ(drafted(0, kAlone), 0);
  EXPECT_EQ(drafted(1, kAlone, 3), 3);
}

TEST(DraftPlan, what_a_draft_costs_is_what_plain_tokens_cost) {
  EXPECT_EQ(drafted(1, {.decoding = 8, .decode_ms = 10, .draft_ms = 1.2, .tokens_max = 16}), 0);
  EXPECT_GT(drafted(1, {.decoding = 8, .decode_ms = 40, .draft_ms = 1.2, .tokens_max = 16}), 0);
  EXPECT_EQ(drafted(0.5, {.decoding = 1, .decode_ms = 5, .draft_ms = 0, .tokens_max = 4}), 4)
      << "not known yet: it is tried";
  EXPECT_EQ(drafted(1, {.decoding = 1, .decode_ms = 5, .draft_ms = 1, .tokens_max = -2}), 0);
}

TEST(DraftPlan, the_likeliest_go_first) {
  std::vector<DraftRow> rows = {
      {.rate = 0.5, .most = 8}, {.rate = 0.95, .most = 8}, {.rate = 0.6, .most = 8}};
  divide_drafts(rows, {.decoding = 3, .decode_ms = 30, .draft_ms = 0.5, .tokens_max = 6});
  EXPECT_EQ(rows[0].tokens + rows[1].tokens + rows[2].tokens, 6);
  EXPECT_GT(rows[1].tokens, rows[2].tokens);
  EXPECT_GE(rows[2].tokens, rows[0].tokens);
}

TEST(DraftPlan, no_pass_is_expected_to_give_fewer_tokens_a_second) {
  for_each_seed(2000, [](Random& random) {
    DraftRules rules{.decoding = 1 + static_cast<int>(random.below(64)),
                     .decode_ms = 1 + 50 * random.uniform(),
                     .draft_ms = 3 * random.uniform(),
                     .tokens_max = static_cast<int>(random.below(33))};
    std::vector<DraftRow> rows(random.below(std::uint64_t(rules.decoding) + 1));
    for (DraftRow& row : rows)
      row = {.rate = random.uniform(), .most = static_cast<int>(random.below(20))};
    divide_drafts(rows, rules);
    double answered = rules.decoding;
    int drafted = 0;
    for (const DraftRow& row : rows) {
      ASSERT_LE(row.tokens, row.most);
      double chance = 1;
      for (int i = 0; i < row.tokens; ++i) answered += chance *= row.rate;
      drafted += row.tokens;
    }
    EXPECT_LE(drafted, rules.tokens_max);
    EXPECT_GE(answered / (rules.decode_ms + drafted * rules.draft_ms),
              (1 - 1e-9) * rules.decoding / rules.decode_ms);
  });
}

}  // namespace
}  // namespace flotilla::batch
