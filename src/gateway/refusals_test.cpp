#include "gateway/refusals.h"

#include <gtest/gtest.h>

namespace flotilla::gateway {
namespace {

using std::chrono::minutes;

TEST(RefusalsTest, HoldsTheSameKeyAndBodyForTenMinutes) {
  Refusals refusals;
  const Instant now{};
  EXPECT_FALSE(refusals.holds("key", "body", now));
  refusals.add("key", "body", now);
  EXPECT_TRUE(refusals.holds("key", "body", now + minutes(9)));
  EXPECT_FALSE(refusals.holds("other", "body", now));
  EXPECT_FALSE(refusals.holds("key", "another body", now));
  EXPECT_FALSE(refusals.holds("keyb", "ody", now));
  EXPECT_FALSE(refusals.holds("key", "body", now + minutes(10)));
}

TEST(RefusalsTest, ForgetsTheOldestBeyondItsBound) {
  Refusals refusals;
  const Instant now{};
  for (int i = 0; i < 1001; ++i) refusals.add("key", std::to_string(i), now);
  EXPECT_FALSE(refusals.holds("key", "0", now));
  EXPECT_TRUE(refusals.holds("key", "1", now));
  EXPECT_TRUE(refusals.holds("key", "1000", now));
}

}  // namespace
}  // namespace flotilla::gateway
