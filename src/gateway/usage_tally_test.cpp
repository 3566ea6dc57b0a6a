#include "gateway/usage_tally.h"

#include <gtest/gtest.h>

namespace flotilla::gateway {
namespace {

constexpr std::int64_t kNoon = 20'000 * 86'400 + 43'200;
const cluster::Usage kUsage{.prompt_tokens = 30, .cached_tokens = 10, .completion_tokens = 7};

TEST(UsageTally, adds_up_by_key_and_utc_day) {
  UsageTally tally;
  EXPECT_TRUE(tally.empty());
  tally.add({.key = "key-1", .name = "ci"}, kUsage, kNoon);
  tally.add({.key = "key-1", .name = "ci"}, kUsage, kNoon + 43'199);
  tally.add({.key = "key-1", .name = "ci"}, {},
            kNoon + 43'200);  // the next day, nothing came of it
  tally.add({}, kUsage, kNoon);
  const auto taken = tally.take();
  ASSERT_EQ(taken.size(), 3U);
  EXPECT_EQ(taken[0].key, "");
  EXPECT_EQ(taken[0].requests, 1);
  EXPECT_EQ(taken[1].day, 20'000);
  EXPECT_EQ(taken[1].name, "ci");
  EXPECT_EQ(taken[1].requests, 2);
  EXPECT_EQ(taken[1].prompt_tokens, 60);
  EXPECT_EQ(taken[1].cached_tokens, 20);
  EXPECT_EQ(taken[1].generated_tokens, 14);
  EXPECT_EQ(taken[2].day, 20'001);
  EXPECT_EQ(taken[2].requests, 1);
  EXPECT_EQ(taken[2].generated_tokens, 0);
}

TEST(UsageTally, what_could_not_be_written_is_written_with_the_next) {
  UsageTally tally;
  const UsageTally::Spender who{.key = "key-1", .name = "ci"};
  tally.add(who, kUsage, kNoon);
  const auto taken = tally.take();
  EXPECT_TRUE(tally.empty());
  tally.add(who, kUsage, kNoon);
  tally.put_back(taken);
  const auto again = tally.take();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].requests, 2);
  EXPECT_EQ(again[0].generated_tokens, 14);
}

}  // namespace
}  // namespace flotilla::gateway
