#include "gateway/attempts.h"

#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace flotilla::gateway {
namespace {

using std::chrono::seconds;

constexpr Instant kNow{};

// Whether it could try, and it failed.
bool guess(Attempts& attempts, const std::string& address, Instant now = kNow) {
  const Attempts::Sender sender{.address = address};
  if (!attempts.check(sender, now)) return false;
  attempts.failed(sender, "guess", now);
  return true;
}

int guesses(Attempts& attempts, int most, const std::function<std::string(int)>& address) {
  int count = 0;
  for (int i = 0; i < most; ++i) count += guess(attempts, address(i)) ? 1 : 0;
  return count;
}

TEST(Attempts, ten_a_minute_and_address) {
  Attempts attempts;
  EXPECT_EQ(guesses(attempts, 30, [](int) { return "10.0.0.1"; }), 10);
  EXPECT_TRUE(guess(attempts, "10.0.0.2"));
  EXPECT_FALSE(guess(attempts, "10.0.0.1", kNow + seconds(60)));
  EXPECT_TRUE(guess(attempts, "10.0.0.1", kNow + seconds(61)));
}

TEST(Attempts, an_ipv6_network_is_one_address) {
  Attempts attempts;
  EXPECT_EQ(guesses(attempts, 30, [](int i) { return fmt::format("2001:db8:1:2::{:x}", i); }), 10);
  EXPECT_TRUE(guess(attempts, "2001:db8:1:3::1"));
  EXPECT_EQ(guesses(attempts, 30, [](int i) { return i % 2 ? "::ffff:10.0.0.1" : "10.0.0.1"; }), 10)
      << "one IPv4 address in two ways of writing";
}

TEST(Attempts, many_addresses_have_a_bound_together_that_this_machine_is_beside) {
  Attempts attempts;
  const auto address = [](int i) {
    return fmt::format("10.{}.{}.{}", i >> 16, (i >> 8) & 255, i & 255);
  };
  EXPECT_EQ(guesses(attempts, 20'000, address), 1000);
  EXPECT_FALSE(attempts.check({.address = "192.0.2.1"}, kNow));
  EXPECT_TRUE(attempts.check({.address = "127.0.0.1", .is_loopback = true}, kNow));
  EXPECT_FALSE(attempts.check({.address = "10.0.0.0"}, kNow + seconds(59)));
  EXPECT_TRUE(attempts.check({.address = "192.0.2.1"}, kNow + seconds(61)));
}

TEST(Attempts, past_ten_thousand_addresses_the_oldest_is_forgotten_and_no_other) {
  Attempts attempts;
  const auto sender = [](int i) {
    return Attempts::Sender{.address = fmt::format("127.0.{}.{}", i >> 8, i & 255),
                            .is_loopback = true};
  };
  for (int i = 0; i < 10'001; ++i) attempts.failed(sender(i), "guess", kNow);
  EXPECT_FALSE(attempts.knows(sender(0), "guess", kNow));
  EXPECT_TRUE(attempts.knows(sender(1), "guess", kNow));
}

TEST(Attempts, the_audit_gets_a_line_an_address_and_minute_and_ten_in_all) {
  Attempts attempts;
  int lines = 0;
  for (int i = 0; i < 100; ++i) {
    const Attempts::Sender sender{.address = fmt::format("10.0.0.{}", i % 20)};
    attempts.failed(sender, "guess", kNow);
    lines += attempts.tell(sender, kNow) ? 1 : 0;
    if (i == 19) {
      EXPECT_EQ(lines, 10);
    }
  }
  EXPECT_EQ(lines, 10);
  const Attempts::Sender again{.address = "10.0.0.1"};
  attempts.failed(again, "guess", kNow + seconds(61));
  EXPECT_TRUE(attempts.tell(again, kNow + seconds(61)));
  EXPECT_FALSE(attempts.tell(again, kNow + seconds(62)));
}

}  // namespace
}  // namespace flotilla::gateway
