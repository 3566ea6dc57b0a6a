#include "engine/checksum.h"

#include <string_view>

#include <gtest/gtest.h>

namespace flotilla::engine {
namespace {

std::uint64_t of(std::string_view text) { return checksum(std::as_bytes(std::span(text))); }

// Published with xxHash.
TEST(Checksum, GivesTheKnownAnswersOfXxh64) {
  EXPECT_EQ(of(""), 0xEF46DB3751D8E999ULL);
  EXPECT_EQ(of("a"), 0xD24EC4F1A98C6E5BULL);
  EXPECT_EQ(of("abc"), 0x44BC2CF5AD770999ULL);
  EXPECT_EQ(of("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1ULL);
}

}  // namespace
}  // namespace flotilla::engine
