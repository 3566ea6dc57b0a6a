#include "base/nearest.h"

#include <array>

#include <gtest/gtest.h>

namespace flotilla {
namespace {

constexpr std::array<std::string_view, 4> kKnown = {"host", "port", "trusted_proxies", "QUEUE_MAX"};

TEST(NearestTest, finds_what_was_meant) {
  EXPECT_EQ(nearest_word("prot", kKnown), "port");
  EXPECT_EQ(nearest_word("trusted_proxy", kKnown), "trusted_proxies");
  EXPECT_EQ(nearest_word("queue_max", kKnown), "QUEUE_MAX");
  EXPECT_EQ(nearest_word("hosts", kKnown), "host");
}

TEST(NearestTest, guesses_nothing_from_afar) {
  EXPECT_EQ(nearest_word("engine", kKnown), "");
  EXPECT_EQ(nearest_word("", kKnown), "");
  EXPECT_EQ(nearest_word(std::string(5000, 'p'), kKnown), "");
  EXPECT_EQ(did_you_mean("x", {}), "");
  EXPECT_EQ(did_you_mean("hots", kKnown), " did you mean \"host\"?");
}

}  // namespace
}  // namespace flotilla
