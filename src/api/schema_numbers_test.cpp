#include "api/schema_numbers.h"

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace flotilla::api::schema {
namespace {

// Rules of character classes, groups and counts are a regular expression, but for their spaces.
std::regex expression(std::string rules) {
  std::erase(rules, ' ');
  return std::regex(rules);
}

// A whole number of units as text, with all ways to end its zeros early.
std::vector<std::string> texts_of(std::int64_t units, int decimals) {
  std::int64_t unit = 1;
  for (int i = 0; i < decimals; ++i) unit *= 10;
  const std::string sign = units < 0 ? "-" : "";
  const std::string whole = sign + std::to_string(std::abs(units) / unit);
  std::string behind = decimals == 0 ? "" : fmt::format("{:0{}}", std::abs(units) % unit, decimals);
  std::vector<std::string> out;
  while (!behind.empty()) {
    out.push_back(whole + '.' + behind);
    if (behind.back() != '0') return out;
    behind.pop_back();
  }
  out.push_back(whole);
  return out;
}

void check(const DecimalRange& range, std::int64_t most) {
  const std::string rules = decimal_rules(range);
  const std::regex matcher = expression(rules);
  for (std::int64_t units = -most; units <= most; ++units) {
    const bool right = units >= range.low && units <= range.high;
    for (const std::string& text : texts_of(units, range.decimals)) {
      ASSERT_EQ(std::regex_match(text, matcher), right)
          << text << " in " << range.low << " to " << range.high << ", " << range.decimals << ": "
          << rules;
    }
  }
  for (const char* wrong : {"", "-", ".", "00", "01", "0.", "1.", ".5", "--1", "1e3", "+1", "-01"})
    ASSERT_FALSE(std::regex_match(wrong, matcher)) << wrong << ": " << rules;
}

TEST(DecimalRules, AllowExactlyTheNumbersBetweenTheBounds) {
  Random random(1);
  for (int i = 0; i < 40; ++i) {
    const int decimals = static_cast<int>(random.below(4));
    const auto at = [&] { return static_cast<std::int64_t>(random.below(600)) - 300; };
    const auto [low, high] = std::minmax({at(), at()});
    check({.low = low, .high = high, .decimals = decimals}, 320);
  }
}

TEST(DecimalRules, HoldAtTheEdgesOfDigits) {
  for (const std::int64_t low : {-100, -99, -10, -9, -1, 0, 1, 9, 10, 99}) {
    for (const std::int64_t high : {-100, -10, -1, 0, 1, 9, 10, 11, 99, 100, 101}) {
      if (low > high) continue;
      for (const int decimals : {0, 1, 2})
        check({.low = low, .high = high, .decimals = decimals}, 110);
    }
  }
}

TEST(DecimalRules, AreShortForOpenSides) {
  constexpr std::int64_t kMost = 999'999'999'999'999'999;
  const std::string rules = decimal_rules({.low = 0, .high = kMost, .decimals = 6});
  EXPECT_LT(rules.size(), 3000U) << rules;
  EXPECT_TRUE(std::regex_match("123456789012.000001", expression(rules)));
  EXPECT_FALSE(std::regex_match("-1", expression(rules)));
}

TEST(Decimal, IsTheShortestThatIsTheDouble) {
  const auto is = [](double number, std::int64_t digits, int decimals) {
    const auto made = decimal_of(number);
    return made && made->digits == digits && made->decimals == decimals;
  };
  EXPECT_TRUE(is(0.3, 3, 1));
  EXPECT_TRUE(is(-2.50, -25, 1));
  EXPECT_TRUE(is(1e15, 1'000'000'000'000'000, 0));
  EXPECT_TRUE(is(1e-7, 1, 7));
  EXPECT_TRUE(is(0, 0, 0));
  EXPECT_FALSE(decimal_of(1e30));
  EXPECT_FALSE(decimal_of(INFINITY));
  EXPECT_EQ(scaled({.digits = 3, .decimals = 1}, 3), 300);
  EXPECT_EQ(scaled({.digits = 3, .decimals = 2}, 1), std::nullopt);
  EXPECT_EQ(scaled({.digits = 1'000'000'000'000'000, .decimals = 0}, 6), std::nullopt);
}

}  // namespace
}  // namespace flotilla::api::schema
