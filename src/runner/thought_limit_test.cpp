#include "runner/thought_limit.h"

#include <gtest/gtest.h>

namespace flotilla::runner {
namespace {

ThoughtBudget budget(int tokens, bool begun = false) {
  return {.tokens = tokens, .start = "<t>", .end = "</t>", .ends = {7, 8}, .begun = begun};
}

TEST(ThoughtLimit, ForcesTheEndWhenTheBudgetIsSpent) {
  ThoughtLimit limit(budget(2));
  limit.add(1, "<t");
  EXPECT_FALSE(limit.forced());
  limit.add(1, ">");
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(limit.forced());
    limit.add(1, "hm");
  }
  ASSERT_EQ(limit.forced(), 7);
  limit.add(7, "</");
  ASSERT_EQ(limit.forced(), 8);
  limit.add(8, "t>");
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(limit.forced());
    limit.add(1, "word");
  }
}

TEST(ThoughtLimit, ThoughtsThatEndInTimeAndAnswersWithoutAnyAreLeftAlone) {
  ThoughtLimit short_one(budget(3, true));
  short_one.add(1, "hm</");
  short_one.add(1, "t>");
  for (int i = 0; i < 9; ++i) {
    EXPECT_FALSE(short_one.forced());
    short_one.add(1, "word");
  }
  ThoughtLimit none(budget(1));
  for (int i = 0; i < 30; ++i) {
    EXPECT_FALSE(none.forced());
    none.add(1, "word ");
  }
  none.add(1, "<t>");
  none.add(1, "x");
  EXPECT_FALSE(none.forced()) << "a mark in the answer is text";
}

TEST(ThoughtLimit, WithoutTokensForTheEndThereIsNone) {
  ThoughtBudget without = budget(0, true);
  without.ends.clear();
  EXPECT_FALSE(ThoughtLimit(without).forced());
  EXPECT_EQ(ThoughtLimit(budget(0, true)).forced(), 7);
}

// When another token comes all the same (rules that do not allow the end), it goes on being forced.
TEST(ThoughtLimit, WhatIsRefusedIsAskedForAgain) {
  ThoughtLimit limit(budget(1, true));
  limit.add(1, "a");
  ASSERT_EQ(limit.forced(), 7);
  limit.add(7, "<");
  limit.add(1, "x");
  EXPECT_EQ(limit.forced(), 7);
}

}  // namespace
}  // namespace flotilla::runner
