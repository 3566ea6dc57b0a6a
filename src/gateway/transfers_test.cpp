#include "gateway/transfers.h"

#include <gtest/gtest.h>

namespace flotilla::gateway {
namespace {

using std::chrono::minutes;

TEST(Transfers, WhatCameBeforeIsReadAnewBeforeSomethingIsSaid) {
  constexpr std::int64_t gib = std::int64_t{1} << 30;
  EXPECT_EQ(silence_limit(0), minutes(2));
  EXPECT_GT(silence_limit(100 * gib), minutes(30)) << "a disk of 60 MB/s takes as long";
}

TEST(Transfers, OneThatIsUnderWayIsNeverForgotten) {
  using enum api::TransferState;
  EXPECT_EQ(oldest_ended({Running, Done, Failed, Running}), 2U);
  EXPECT_EQ(oldest_ended({Done, Running, Running}), 0U);
  EXPECT_EQ(oldest_ended({Running, Running}), std::nullopt);
}

}  // namespace
}  // namespace flotilla::gateway
