#include "kernels/row_operations.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "kernels/test_data.h"

namespace flotilla::kernels {
namespace {

constexpr float kEpsilon = 1e-5F;

std::vector<float> rms_norm(InstructionSet set, const std::vector<float>& from,
                            const std::vector<float>& weight, bool in_place) {
  std::vector<float> to = in_place ? from : std::vector<float>(from.size() + 1, 77.0F);
  row_kernels(set)->rms_norm(in_place ? to.data() : from.data(), weight.data(), kEpsilon, to.data(),
                             static_cast<int>(from.size()));
  if (!in_place) {
    EXPECT_EQ(to.back(), 77.0F) << "written behind the row";
    to.pop_back();
  }
  return to;
}

// The mean is a sum of n squares in floats: its relative error is at most (n / 16 + 16) * 2^-24,
// and half of that reaches the result, beside three roundings.
TEST(RowOperations, RmsNormIsTheDefinitionAndTheSameBitsInEverySet) {
  Random random(1);
  for (const int count : {1, 15, 16, 17, 64, 100, 576, 2048}) {
    const std::vector<float> from = random_floats(count, random);
    const std::vector<float> weight = random_floats(count, random);
    double squares = 0;
    for (const float x : from) squares += double{x} * double{x};
    const double scale = 1 / std::sqrt(squares / count + double{kEpsilon});
    const double bound = ((count / 16.0 + 16) / 2 + 3) * 0x1p-24;
    std::vector<float> first;
    for (const InstructionSet set : present_sets()) {
      SCOPED_TRACE(std::string(name_of(set)) + " count " + std::to_string(count));
      const std::vector<float> result = rms_norm(set, from, weight, false);
      for (std::size_t i = 0; i < from.size(); ++i) {
        const double expected = double{from[i]} * scale * double{weight[i]};
        ASSERT_NEAR(double{result[i]}, expected, std::abs(expected) * bound) << i;
      }
      if (first.empty()) first = result;
      EXPECT_EQ(result, first);
      EXPECT_EQ(rms_norm(set, from, weight, true), first);
    }
  }
}

TEST(RowOperations, ARowOfZerosStaysZero) {
  for (const InstructionSet set : present_sets()) {
    const std::vector<float> zeros(40);
    EXPECT_EQ(rms_norm(set, zeros, std::vector<float>(40, 2.0F), false), zeros);
  }
}

}  // namespace
}  // namespace flotilla::kernels
