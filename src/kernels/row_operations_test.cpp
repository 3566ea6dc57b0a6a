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

// Two roundings of the gate's exponential and one each of its sum, quotient and product; its
// polynomial errs by 1e-7.
TEST(RowOperations, SumsAndGatesAreTheirDefinitionsInEverySet) {
  for (const InstructionSet set : present_sets()) {
    Random random(2);
    for (const int count : {1, 15, 16, 17, 100}) {
      SCOPED_TRACE(std::string(name_of(set)) + " count " + std::to_string(count));
      const std::vector<float> a = random_floats(count, random);
      const std::vector<float> b = random_floats(count, random);
      std::vector<float> sums(a.size() + 1, 77.0F);
      std::vector<float> gated = a;
      row_kernels(set)->add(a.data(), b.data(), sums.data(), count);
      row_kernels(set)->silu_times(gated.data(), b.data(), gated.data(), count);
      for (std::size_t i = 0; i < a.size(); ++i) {
        ASSERT_EQ(sums[i], a[i] + b[i]);
        const double expected = double{a[i]} / (1 + std::exp(-double{a[i]})) * double{b[i]};
        ASSERT_NEAR(double{gated[i]}, expected, std::abs(expected) * 6e-7) << a[i];
      }
      EXPECT_EQ(sums.back(), 77.0F) << "written behind the row";
    }
  }
}

// The number is what x86-64 and Arm processors compute: all sets must.
TEST(RowOperations, EveryKindOfProcessorComputesTheSameBits) {
  for (const InstructionSet set : present_sets()) {
    SCOPED_TRACE(name_of(set));
    Random random(3);
    std::vector<float> from = random_floats(1000, random);
    const std::vector<float> weight = random_floats(1000, random);
    for (int i = 0; i < 100; ++i) from[i] *= 40;  // gates that are shut, and wide open
    std::vector<float> all = rms_norm(set, from, weight, false);
    std::vector<float> gated(from.size());
    row_kernels(set)->silu_times(from.data(), weight.data(), gated.data(), 1000);
    all.insert(all.end(), gated.begin(), gated.end());
    EXPECT_EQ(bits_of(all), 12150998525671395834U);
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
