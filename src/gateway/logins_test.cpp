#include "gateway/logins.h"

#include <gtest/gtest.h>

namespace flotilla::gateway {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr Instant kNow{};

TEST(Logins, a_log_in_holds_until_it_ends) {
  Logins logins;
  const std::string mine = logins.begin(kNow);
  const std::string other = logins.begin(kNow);
  EXPECT_NE(mine, other);
  EXPECT_TRUE(logins.use(mine, kNow));
  EXPECT_FALSE(logins.use("", kNow));
  EXPECT_FALSE(logins.use(mine + "0", kNow));
  logins.end(mine);
  EXPECT_FALSE(logins.use(mine, kNow));
  EXPECT_TRUE(logins.use(other, kNow)) << "each by itself";
}

TEST(Logins, twelve_hours_without_use_end_it) {
  Logins logins;
  const std::string secret = logins.begin(kNow);
  EXPECT_TRUE(logins.use(secret, kNow + hours(12) - seconds(1)));
  EXPECT_TRUE(logins.hold(secret, kNow + hours(23))) << "counted from the last use";
  EXPECT_FALSE(logins.use(secret, kNow + hours(24)));
}

TEST(Logins, looking_is_no_use) {
  Logins logins;
  const std::string secret = logins.begin(kNow);
  EXPECT_TRUE(logins.hold(secret, kNow + hours(11)));
  EXPECT_FALSE(logins.hold(secret, kNow + hours(12)));
}

TEST(Logins, are_bounded_and_the_longest_idle_gives_way) {
  Logins logins;
  const std::string first = logins.begin(kNow);
  const std::string second = logins.begin(kNow + seconds(1));
  for (std::size_t i = 2; i < Logins::kMax; ++i) logins.begin(kNow + seconds(2));
  EXPECT_TRUE(logins.use(first, kNow + seconds(3)));
  logins.begin(kNow + seconds(4));
  EXPECT_EQ(logins.size(), Logins::kMax);
  EXPECT_TRUE(logins.hold(first, kNow + seconds(4)));
  EXPECT_FALSE(logins.hold(second, kNow + seconds(4)));
}

}  // namespace
}  // namespace flotilla::gateway
