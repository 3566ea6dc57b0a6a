#include "kernels/matmul.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "kernels/reference.h"
#include "kernels/test_data.h"

namespace flotilla::kernels {
namespace {

constexpr WeightType kTypes[] = {WeightType::Q4_0, WeightType::Q4_1, WeightType::Q8_0,
                                 WeightType::Q4_K, WeightType::Q6_K};

std::vector<InstructionSet> matmul_sets() {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set : present_sets()) {
    if (matmul_kernels(set) != nullptr) sets.push_back(set);
  }
  return sets;
}

struct Shape {
  int rows;
  int depth;
  int columns;
};

// Weights and inputs of a shape, the packed form, and what the reference makes of it.
class Case {
 public:
  Case(WeightType type, Shape shape, Random& random)
      : Case(type, shape, random_weights(type, shape.rows, shape.depth, random),
             random_floats(shape.columns * shape.depth, random)) {}

  Case(WeightType type, Shape shape, std::vector<std::byte> source, std::vector<float> inputs)
      : shape_(shape),
        source_(std::move(source)),
        inputs_(std::move(inputs)),
        expected_(static_cast<std::size_t>(shape.columns * shape.rows)) {
    matrix_ = {.type = type, .rows = shape.rows, .depth = shape.depth};
    packed_.resize(matrix_.bytes());
    matrix_.data = packed_.data();
    pack_groups(matrix_, packed_.data(), source_.data(), 0, groups_of(shape.rows));
    reference::multiply(type, source_.data(), shape.rows, shape.depth, inputs_.data(),
                        shape.columns, expected_.data());
  }

  // Results [columns][stride] between guards, computed in `parts` ranges of groups.
  std::vector<float> compute(const MatmulKernels& kernels, int parts, int misaligned = 0) const {
    AlignedBytes memory(Activations::bytes(shape_.columns, shape_.depth));
    const Activations activations = Activations::in(memory.data(), shape_.columns, shape_.depth);
    std::vector<float> moved(inputs_.size() + 16);
    std::memcpy(moved.data() + misaligned, inputs_.data(), inputs_.size() * sizeof(float));
    for (int part = 0; part < parts; ++part) {
      const int first = shape_.columns * part / parts;
      quantize_columns(kernels, activations, moved.data() + misaligned + first * shape_.depth,
                       shape_.depth, first, shape_.columns * (part + 1) / parts);
    }
    std::vector<float> output(expected_.size() + 2 * kGuard + 16,
                              std::numeric_limits<float>::quiet_NaN());
    const int groups = groups_of(shape_.rows);
    for (int part = 0; part < parts; ++part) {
      kernels.multiply(matrix_, activations, groups * part / parts, groups * (part + 1) / parts,
                       {.data = output.data() + kGuard + misaligned, .column_stride = shape_.rows});
    }
    for (int i = 0; i < kGuard; ++i) {
      EXPECT_TRUE(std::isnan(output[i])) << "written before the output";
      EXPECT_TRUE(std::isnan(output[output.size() - 1 - i])) << "written behind the output";
    }
    return {output.begin() + kGuard + misaligned,
            output.begin() + kGuard + misaligned + static_cast<std::ptrdiff_t>(expected_.size())};
  }

  void expect_exact(const std::vector<float>& output) const {
    ASSERT_EQ(output.size(), expected_.size());
    for (std::size_t i = 0; i < output.size(); ++i) {
      ASSERT_EQ(output[i], expected_[i])
          << "column " << i / shape_.rows << " row " << i % shape_.rows;
    }
  }

  const std::vector<std::byte>& source() const { return source_; }
  const std::vector<float>& inputs() const { return inputs_; }
  const std::vector<float>& expected() const { return expected_; }

 private:
  static constexpr int kGuard = 64;

  Shape shape_;
  std::vector<std::byte> source_;
  std::vector<float> inputs_;
  std::vector<float> expected_;
  AlignedBytes packed_;
  PackedMatrix matrix_;
};

TEST(Matmul, EverySetEqualsTheReferenceBitByBitForAnyNumberOfColumns) {
  Random random(1);
  for (const WeightType type : kTypes) {
    for (int columns = 1; columns <= 33; ++columns) {
      if (columns > 17 && columns < 32) continue;
      const Case one(type, {.rows = 48, .depth = 256, .columns = columns}, random);
      for (const InstructionSet set : matmul_sets()) {
        SCOPED_TRACE(std::string(name_of(set)) + " type " + std::to_string(int(type)) +
                     " columns " + std::to_string(columns));
        one.expect_exact(one.compute(*matmul_kernels(set), 1));
      }
    }
  }
}

TEST(Matmul, RowsAndDepthsAtTheEdgesOfGroupsAndBlocks) {
  Random random(2);
  for (const WeightType type : kTypes) {
    for (const int rows : {1, 15, 16, 17, 37, 130}) {
      for (const int units : {1, 2, 3, 7}) {
        const Case one(type, {.rows = rows, .depth = units * depth_unit(type), .columns = 3},
                       random);
        for (const InstructionSet set : matmul_sets()) {
          SCOPED_TRACE(std::string(name_of(set)) + " type " + std::to_string(int(type)) + " rows " +
                       std::to_string(rows) + " units " + std::to_string(units));
          one.expect_exact(one.compute(*matmul_kernels(set), 1));
        }
      }
    }
  }
}

TEST(Matmul, PartsOfThreadsAndMisalignedMemoryChangeNothing) {
  Random random(3);
  for (const WeightType type : kTypes) {
    const Case one(type, {.rows = 75, .depth = 512, .columns = 21}, random);
    for (const InstructionSet set : matmul_sets()) {
      SCOPED_TRACE(name_of(set));
      one.expect_exact(one.compute(*matmul_kernels(set), 3));
      for (const int misaligned : {1, 3, 13}) {
        one.expect_exact(one.compute(*matmul_kernels(set), 2, misaligned));
      }
    }
  }
}

// Where sums of products are largest, and what an unsigned or signed byte cannot hold would show.
TEST(Matmul, WeightsAndInputsAtTheEndsOfTheirRangesAreExact) {
  Random random(6);
  const Shape shape{.rows = 20, .depth = 512, .columns = 7};
  for (const WeightType type : kTypes) {
    for (const int byte : {0x00, 0x7f, 0x80, 0xff}) {
      std::vector<float> inputs(static_cast<std::size_t>(shape.columns * shape.depth));
      for (int i = 0; i < shape.columns * shape.depth; ++i) {
        const int column = i / shape.depth;
        inputs[i] = column == 0 || (column > 1 && i % column == 0) ? 3.0F : -3.0F;
      }
      const Case one(type, shape, equal_weights(type, shape.rows, shape.depth, byte, random),
                     inputs);
      for (const InstructionSet set : matmul_sets()) {
        SCOPED_TRACE(std::string(name_of(set)) + " type " + std::to_string(int(type)) + " byte " +
                     std::to_string(byte));
        one.expect_exact(one.compute(*matmul_kernels(set), 1));
      }
    }
  }
}

// Quantising to 127 steps errs by at most half a step: |error| <= sum |w| * max |x| / 254, plus the
// float sum's own rounding.
TEST(Matmul, TheReferenceIsWithinTheErrorOfItsQuantisation) {
  Random random(4);
  for (const WeightType type : kTypes) {
    const Shape shape{.rows = 5, .depth = 512, .columns = 2};
    const Case one(type, shape, random);
    for (int column = 0; column < shape.columns; ++column) {
      for (int row = 0; row < shape.rows; ++row) {
        const std::byte* weights = one.source().data() + row * source_row_bytes(type, shape.depth);
        double sum = 0;
        double size = 0;
        for (int i = 0; i < shape.depth; ++i) {
          const double weight = reference::weight(type, weights, i);
          sum += weight * double{one.inputs()[column * shape.depth + i]};
          size += std::abs(weight);
        }
        EXPECT_NEAR(double{one.expected()[column * shape.rows + row]}, sum,
                    size * kRandomFloatMax / 254 * 1.01);
      }
    }
  }
}

TEST(Matmul, ZerosAndLargeInputsStayFinite) {
  Random random(5);
  for (const InstructionSet set : matmul_sets()) {
    const MatmulKernels& kernels = *matmul_kernels(set);
    float column[kBlock] = {};
    std::int8_t quants[kBlock];
    BlockScale scale{};
    kernels.quantize(column, 1, quants, &scale, {.column = 0, .width = 1});
    EXPECT_EQ(scale.scale, 0);
    EXPECT_EQ(scale.scaled_sum, 0);
    column[5] = -3e38F;
    kernels.quantize(column, 1, quants, &scale, {.column = 0, .width = 1});
    EXPECT_EQ(quants[5], -127);
    EXPECT_TRUE(std::isfinite(scale.scaled_sum));
  }
}

}  // namespace
}  // namespace flotilla::kernels
