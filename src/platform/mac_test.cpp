#include "platform/mac.h"

#include <gtest/gtest.h>

namespace flotilla::platform {
namespace {

constexpr std::int64_t kGib = 1LL << 30;

TEST(Mac, MetalHasItsLimitElseTheSystemsShare) {
  EXPECT_EQ(metal_bytes(64 * kGib, 57344), 56 * kGib);
  EXPECT_EQ(metal_bytes(24 * kGib, 0), 16 * kGib);
  EXPECT_EQ(metal_bytes(64 * kGib, 0), 48 * kGib);
}

TEST(Mac, OnlyAMacIsKeptAwake) {
  EXPECT_FALSE(awake_command("linux-x86_64", 7));
  const auto command = awake_command("macos-arm64", 7);
  ASSERT_TRUE(command);
  EXPECT_EQ(command->program, "caffeinate");
  EXPECT_EQ(command->arguments.back(), "7");
}

}  // namespace
}  // namespace flotilla::platform
