#include "kernels/attention.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "kernels/reference.h"
#include "kernels/test_data.h"

namespace flotilla::kernels {
namespace {

constexpr std::uint16_t kHidden = 0xfc00;

std::vector<InstructionSet> attention_sets() {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set : present_sets()) {
    if (has_attention(set)) sets.push_back(set);
  }
  return sets;
}

struct Shape {
  int rows = 1;
  int cells = 16;
  int heads = 3;
  int kv_heads = 1;
  int size = 64;
  int streams = 1;
};

// Owns what a call points at. Keys and values are [stream][cell][kv head][size].
struct Case {
  Case(Shape shape, Random& random)
      : query(random_floats(shape.streams * shape.rows * shape.heads * shape.size, random)),
        key(random_halves(shape.streams * shape.cells * shape.kv_heads * shape.size, random)),
        value(random_halves(shape.streams * shape.cells * shape.kv_heads * shape.size, random)),
        mask(static_cast<std::size_t>(shape.streams * shape.rows * shape.cells)) {
    call.streams = shape.streams;
    call.stream_rows = shape.rows;
    call.cells = shape.cells;
    call.heads = shape.heads;
    call.kv_heads = shape.kv_heads;
    call.size = shape.size;
    call.scale = 1 / std::sqrt(static_cast<float>(shape.size));
    call.query_head = shape.size;
    call.query_row = shape.heads * shape.size;
    call.query_stream = call.query_row * shape.rows;
    call.key_head = call.value_head = shape.size;
    call.key_cell = call.value_cell = shape.kv_heads * shape.size;
    call.key_stream = call.value_stream = call.key_cell * shape.cells;
    call.mask_row = shape.cells;
    call.mask_stream = shape.cells * shape.rows;
  }

  std::vector<float> compute(InstructionSet set, int threads = 1) {
    point();
    std::vector<float> output(query.size() + 2 * kGuard, std::nanf(""));
    call.output = output.data() + kGuard;
    AttentionScratch scratch;
    std::atomic<int> next{0};
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads; ++thread) {
      others.emplace_back([&] {
        AttentionScratch own;
        attend(set, call, next, own);
      });
    }
    attend(set, call, next, scratch);
    for (std::thread& other : others) other.join();
    for (int i = 0; i < kGuard; ++i) {
      EXPECT_TRUE(std::isnan(output[i]) && std::isnan(output[output.size() - 1 - i]));
    }
    return {output.begin() + kGuard, output.end() - kGuard};
  }

  std::vector<float> expected() {
    point();
    std::vector<float> output(query.size());
    call.output = output.data();
    reference::attend(call);
    return output;
  }

  void point() {
    call.query = query.data();
    call.key = key.data();
    call.value = value.data();
    call.mask = mask.data();
  }

  static constexpr int kGuard = 64;
  AttentionCall call;
  std::vector<float> query;
  std::vector<std::uint16_t> key;
  std::vector<std::uint16_t> value;
  std::vector<std::uint16_t> mask;
};

// Scores of up to 4 * 2 * 16: their error of 64 roundings moves a weight by 1e-4; values are
// below 2.
void expect_close(const std::vector<float>& output, const std::vector<float>& expected) {
  ASSERT_EQ(output.size(), expected.size());
  for (std::size_t i = 0; i < output.size(); ++i) {
    ASSERT_NEAR(output[i], expected[i], 2e-4) << "at " << i;
  }
}

void hide_at_random(Case& one, Random& random, int percent) {
  for (auto& bits : one.mask) bits = random.below(100) < std::uint64_t(percent) ? kHidden : 0;
}

TEST(Attention, EqualsTheReferenceForEveryHeadSizeAndGrouping) {
  Random random(1);
  for (const InstructionSet set : attention_sets()) {
    for (int size = 64; size <= 256; size += 16) {
      for (const int group : {1, 3, 8}) {
        SCOPED_TRACE(std::string(name_of(set)) + " size " + std::to_string(size));
        Case one({.rows = 2, .cells = 77, .heads = 2 * group, .kv_heads = 2, .size = size}, random);
        hide_at_random(one, random, 30);
        expect_close(one.compute(set), one.expected());
      }
    }
  }
}

TEST(Attention, EqualsTheReferenceForEveryNumberOfCellsAndRows) {
  Random random(2);
  for (const InstructionSet set : attention_sets()) {
    for (const int cells : {1, 2, 15, 16, 17, 63, 64, 65, 130, 300}) {
      for (const int rows : {1, 2, 7, 33}) {
        SCOPED_TRACE(std::to_string(cells) + " cells, " + std::to_string(rows) + " rows");
        Case one({.rows = rows, .cells = cells, .streams = 2}, random);
        // Causal with a window, as a prompt's rows are.
        for (int i = 0; i < 2 * rows * cells; ++i) {
          const int cell = i % cells;
          const int last = cells - rows + i / cells % rows;
          one.mask[i] = cell > last || cell < last - 100 ? kHidden : 0;
        }
        expect_close(one.compute(set), one.expected());
      }
    }
  }
}

// The number is what x86-64 and Arm processors compute: all sets must.
TEST(Attention, EveryKindOfProcessorComputesTheSameBits) {
  for (const InstructionSet set : attention_sets()) {
    SCOPED_TRACE(name_of(set));
    Random random(6);
    std::vector<float> all;
    for (int size = 64; size <= 256; size += 16) {
      for (const int rows : {1, 3}) {
        Case one({.rows = rows, .cells = 133, .heads = 6, .kv_heads = 2, .size = size}, random);
        hide_at_random(one, random, 30);
        if (size % 32 == 0) one.call.soft_cap = 5;
        const std::vector<float> output = one.compute(set);
        all.insert(all.end(), output.begin(), output.end());
      }
    }
    EXPECT_EQ(bits_of(all), 92350913867623612U);
  }
}

TEST(Attention, SoftCapBendsScores) {
  Random random(3);
  for (const InstructionSet set : attention_sets()) {
    Case one({.rows = 3, .cells = 50}, random);
    one.call.scale = 1;
    one.call.soft_cap = 5;
    expect_close(one.compute(set), one.expected());
  }
}

TEST(Attention, ARowThatSeesNothingIsZero) {
  Random random(4);
  for (const InstructionSet set : attention_sets()) {
    Case one({.rows = 3, .cells = 40}, random);
    std::fill_n(one.mask.begin() + 40, 40, kHidden);
    const std::vector<float> output = one.compute(set);
    const std::size_t row = 3 * 64;
    EXPECT_TRUE(std::all_of(output.begin() + row, output.begin() + 2 * row,
                            [](float x) { return x == 0; }));
    expect_close(output, one.expected());
  }
}

TEST(Attention, ABrokenSequenceBreaksNoOther) {
  Random random(5);
  for (const InstructionSet set : attention_sets()) {
    Case one({.rows = 8, .cells = 64}, random);
    // Odd rows see odd cells as well, which hold infinities and NaN.
    for (int i = 0; i < 8 * 64; ++i) {
      one.mask[i] = i / 64 % 2 == 0 && i % 4 == 1 ? kHidden : 0;
    }
    const std::vector<float> expected = one.expected();
    for (int cell = 1; cell < 64; cell += 4) {
      std::fill_n(one.key.begin() + cell * 64, 64, std::uint16_t{0x7e00});
      std::fill_n(one.value.begin() + cell * 64, 64, std::uint16_t{0x7c00});
    }
    const std::vector<float> output = one.compute(set);
    for (int row = 0; row < 8; row += 2) {
      for (int i = 0; i < 3 * 64; ++i) {
        ASSERT_NEAR(output[row * 3 * 64 + i], expected[row * 3 * 64 + i], 2e-4);
      }
    }
  }
}

// One sequence, its cells anywhere among others' cells, its row anywhere among others' rows.
TEST(Attention, BitsDependOnNeitherPlaceNorCompanyNorThreads) {
  for (const InstructionSet set : attention_sets()) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Random random(seed);
      const int own = 1 + static_cast<int>(random.below(200));
      const int size = 64 + 16 * static_cast<int>(random.below(5));
      Case alone({.rows = 1, .cells = own, .heads = 6, .kv_heads = 2, .size = size}, random);
      // Values of all magnitudes, and scores sharp or flat.
      for (auto& bits : alone.value) {
        bits = static_cast<std::uint16_t>(random.below(0x7000) | random.below(2) << 15);
      }
      alone.call.scale *= static_cast<float>(random.uniform() * 3);
      const std::vector<float> expected = alone.compute(set);

      const int cells = own + static_cast<int>(random.below(150));
      const int rows = 1 + static_cast<int>(random.below(20));
      Case crowd({.rows = rows, .cells = cells, .heads = 6, .kv_heads = 2, .size = size}, random);
      crowd.call.scale = alone.call.scale;
      std::vector<int> place(static_cast<std::size_t>(cells));
      std::iota(place.begin(), place.end(), 0);
      for (std::size_t i = place.size(); i > 1; --i)
        std::swap(place[i - 1], place[random.below(i)]);
      hide_at_random(crowd, random, static_cast<int>(random.below(100)));
      const int row = static_cast<int>(random.below(static_cast<std::uint64_t>(rows)));
      std::fill_n(crowd.mask.begin() + row * cells, cells, kHidden);
      const int cell_size = 2 * size;
      for (int i = 0; i < own; ++i) {
        std::copy_n(alone.key.begin() + i * cell_size, cell_size,
                    crowd.key.begin() + place[i] * cell_size);
        std::copy_n(alone.value.begin() + i * cell_size, cell_size,
                    crowd.value.begin() + place[i] * cell_size);
        crowd.mask[row * cells + place[i]] = 0;
      }
      std::copy(alone.query.begin(), alone.query.end(), crowd.query.begin() + row * 6 * size);
      const std::vector<float> output = crowd.compute(set, 1 + static_cast<int>(random.below(4)));
      for (int i = 0; i < 6 * size; ++i) {
        ASSERT_EQ(output[row * 6 * size + i], expected[i]) << "at " << i << " of " << own;
      }
    }
  }
}

}  // namespace
}  // namespace flotilla::kernels
