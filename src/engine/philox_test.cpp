#include "engine/philox.h"

#include <cmath>

#include <gtest/gtest.h>

#include "engine/sampler.h"

namespace flotilla::engine {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers that the authors publish with Random123.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterUniform, IsUniformAlongPositionsAndAlongSeeds) {
  constexpr int kBins = 64;
  constexpr int kDraws = 64'000;
  for (const bool by_position : {true, false}) {
    std::array<int, kBins> bins{};
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      const double u = by_position ? counter_uniform(7, i) : counter_uniform(i, 7);
      ASSERT_TRUE(u >= 0 && u < 1);
      ++bins[static_cast<std::size_t>(u * kBins)];
    }
    double chi_square = 0;
    for (const int count : bins) chi_square += std::pow(count - kDraws / kBins, 2.0);
    chi_square /= static_cast<double>(kDraws) / kBins;
    EXPECT_LT(chi_square, 110);  // 63 degrees of freedom: p < 0.0003
  }
}

// Stored conversations are resumed by later versions: these may never change.
TEST(CounterUniform, DrawsWhatItDrewBefore) {
  EXPECT_DOUBLE_EQ(counter_uniform(0, 0),
                   static_cast<double>(0xe169c58d6627e8d5ULL >> 11) * 0x1.0p-53);
  EXPECT_NE(counter_uniform(1, 2), counter_uniform(2, 1));
}

}  // namespace
}  // namespace flotilla::engine
