#include "kernels/matmul_neon.h"

// Compiled for NEON with matrix products of bytes (I8MM): see matmul_avx512.cpp on what it may
// include.
namespace flotilla::kernels {
namespace {

// usmmla multiplies 2 rows of 8 unsigned bytes by 2 columns of 8 signed ones: 32 products where
// usdot has 16. So a vector holds 2 rows of 2 columns: {row 0: a, b, row 1: a, b}. A tile of one
// column goes by usdot, 4 rows a vector.
// Pairs are made where columns are quantised: made here, 10 operations would come to the 16 of each
// quarter of the rows. Two columns' blocks are 64 bytes, {8 of a, 8 of b} four times, and their
// scales eight numbers, {scale of a, of b, scaled_sum ..., start ..., start_high ...}. The last of
// an odd number of columns lies as other sets have it.
struct Pairs {
  static constexpr bool kSigned = false;

  static int32x4_t dot(const uint8x16_t* v, int8x16_t q, int32x4_t sum) {
    sum = vusdotq_laneq_s32(sum, v[0], q, 0);
    sum = vusdotq_laneq_s32(sum, v[1], q, 1);
    sum = vusdotq_laneq_s32(sum, v[2], q, 2);
    return vusdotq_laneq_s32(sum, v[3], q, 3);
  }

  static void quantize(const float* column, int blocks, std::int8_t* quants, BlockScale* scales,
                       TilePlace place) {
    const int second = place.column % 2;
    const bool alone = second == 0 && place.column + 1 == place.width;
    for (int b = 0; b < blocks; ++b) {
      const auto block = NeonQuants<Pairs>::of(column + b * kBlock);
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(b) * place.width - second;
      std::int8_t* to = quants + at * kBlock;
      if (alone) {
        vst1q_s8(to, block.low);
        vst1q_s8(to + 16, block.high);
        scales[at] = block.scale;
        continue;
      }
      to += 8 * second;
      vst1_s8(to, vget_low_s8(block.low));
      vst1_s8(to + 16, vget_high_s8(block.low));
      vst1_s8(to + 32, vget_low_s8(block.high));
      vst1_s8(to + 48, vget_high_s8(block.high));
      const auto numbers = __builtin_bit_cast(Numbers, block.scale);
      auto* pair = reinterpret_cast<std::int32_t*>(scales + at) + second;
      for (int i = 0; i < 4; ++i) pair[2 * i] = numbers.of[i];
    }
  }

  template <WeightType T, int Quarters, int N>
  static void run(const NeonPass& pass, PassResults& results) {
    if constexpr (N == 1) {
      NeonDots<Pairs>::run<T, Quarters, N>(pass, results);
    } else {
      run_pairs<T, Quarters, N>(pass, results);
    }
  }

 private:
  // Two rows of a block, each number of a row twice: once for each column.
  struct Rows {
    uint8x16_t v[4];  // v[i]: weights 8i to 8i + 7 of both rows
    float32x4_t scale;
    float32x4_t scale_high;
    float32x4_t minimum;
  };

  struct Columns {
    int8x16_t q[4];  // q[i]: activations 8i to 8i + 7 of both columns
    float32x4_t scale;
    float32x4_t scaled_sum;
    int32x4_t start;
    int32x4_t start_high;
  };

  template <WeightType T>
  static void pair_rows(const NeonBlock<Pairs, T>& block, Rows (&rows)[2]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const uint32x4_t a = vreinterpretq_u32_u8(block.v[2 * i]);
      const uint32x4_t b = vreinterpretq_u32_u8(block.v[2 * i + 1]);
      rows[0].v[i] = vreinterpretq_u8_u32(vzip1q_u32(a, b));
      rows[1].v[i] = vreinterpretq_u8_u32(vzip2q_u32(a, b));
    }
    rows[0].scale = vzip1q_f32(block.scale, block.scale);
    rows[1].scale = vzip2q_f32(block.scale, block.scale);
    if constexpr (T == WeightType::Q6_K) {
      rows[0].scale_high = vzip1q_f32(block.scale_high, block.scale_high);
      rows[1].scale_high = vzip2q_f32(block.scale_high, block.scale_high);
    }
    if constexpr (T == WeightType::Q4_1 || T == WeightType::Q4_K) {
      rows[0].minimum = vzip1q_f32(block.minimum, block.minimum);
      rows[1].minimum = vzip2q_f32(block.minimum, block.minimum);
    }
  }

  struct Numbers {
    std::int32_t of[4];
  };
  static_assert(sizeof(Numbers) == sizeof(BlockScale));

  static int32x4_t twice(const std::int32_t* pair) {
    const int32x2_t x = vld1_s32(pair);
    return vcombine_s32(x, x);
  }

  static Columns load_pair(const std::int8_t* quants, const BlockScale* scales) {
    const auto* numbers = reinterpret_cast<const std::int32_t*>(scales);
    Columns columns;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) columns.q[i] = vld1q_s8(quants + 16 * i);
    columns.scale = vreinterpretq_f32_s32(twice(numbers));
    columns.scaled_sum = vreinterpretq_f32_s32(twice(numbers + 2));
    columns.start = twice(numbers + 4);
    columns.start_high = twice(numbers + 6);
    return columns;
  }

  // A column with itself.
  static Columns load_one(const std::int8_t* quants, const BlockScale& scale) {
    Columns columns;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const int8x8_t x = vld1_s8(quants + 8 * i);
      columns.q[i] = vcombine_s8(x, x);
    }
    columns.scale = vdupq_n_f32(scale.scale);
    columns.scaled_sum = vdupq_n_f32(scale.scaled_sum);
    columns.start = vdupq_n_s32(scale.start);
    columns.start_high = vdupq_n_s32(scale.start_high);
    return columns;
  }

  template <WeightType T>
  static float32x4_t add_columns(const Rows& rows, const Columns& columns, float32x4_t sum) {
    const NeonStart start = neon_start<Pairs, T>(columns.start, columns.start_high);
    int32x4_t dot = vusmmlaq_s32(start.low, rows.v[0], columns.q[0]);
    dot = vusmmlaq_s32(dot, rows.v[1], columns.q[1]);
    const float32x4_t scale = vmulq_f32(rows.scale, columns.scale);
    if constexpr (T == WeightType::Q6_K) {
      sum = vfmaq_f32(sum, vcvtq_f32_s32(dot), scale);
      dot = start.high;
    }
    dot = vusmmlaq_s32(dot, rows.v[2], columns.q[2]);
    dot = vusmmlaq_s32(dot, rows.v[3], columns.q[3]);
    if constexpr (T == WeightType::Q6_K) {
      return vfmaq_f32(sum, vcvtq_f32_s32(dot), vmulq_f32(rows.scale_high, columns.scale));
    }
    sum = vfmaq_f32(sum, vcvtq_f32_s32(dot), scale);
    if constexpr (T == WeightType::Q4_1 || T == WeightType::Q4_K) {
      sum = vfmaq_f32(sum, rows.minimum, columns.scaled_sum);
    }
    return sum;
  }

  template <WeightType T, int Quarters, int N>
  static void run_pairs(const NeonPass& pass, PassResults& results) {
    constexpr int kPairs = (N + 1) / 2;
    float32x4_t sums[Quarters][kPairs][2];
#pragma GCC unroll 4
    for (int r = 0; r < Quarters; ++r) {
#pragma GCC unroll 8
      for (int p = 0; p < kPairs; ++p) sums[r][p][0] = sums[r][p][1] = vdupq_n_f32(0);
    }
    const std::byte* group = pass.group;
    const std::byte* super = group;
    const std::int8_t* quants = pass.quants;
    const BlockScale* scales = pass.scales;
    for (int b = 0; b < pass.blocks; ++b) {
      if (layout_of(T).super_bytes != 0 && b % kSuperBlock == 0) {
        super = group;
        group += layout_of(T).super_bytes;
      }
#pragma GCC unroll 4
      for (int r = 0; r < Quarters; ++r) {
        Rows rows[2];
        pair_rows(NeonBlock<Pairs, T>::unpack(group, super, pass.quarter + r), rows);
#pragma GCC unroll 8
        for (int p = 0; p < kPairs; ++p) {
          const std::int8_t* q = quants + kBlock * 2 * p;
          const Columns columns =
              2 * p + 1 < N ? load_pair(q, scales + 2 * p) : load_one(q, scales[2 * p]);
          sums[r][p][0] = add_columns<T>(rows[0], columns, sums[r][p][0]);
          sums[r][p][1] = add_columns<T>(rows[1], columns, sums[r][p][1]);
        }
      }
      group += layout_of(T).block_bytes();
      quants += kBlock * N;
      scales += N;
    }
#pragma GCC unroll 4
    for (int r = 0; r < Quarters; ++r) {
      const int row = 4 * (pass.quarter + r);
#pragma GCC unroll 8
      for (int p = 0; p < kPairs; ++p) {
        vst1q_f32(results[2 * p] + row, vuzp1q_f32(sums[r][p][0], sums[r][p][1]));
        if (2 * p + 1 == N) continue;
        vst1q_f32(results[2 * p + 1] + row, vuzp2q_f32(sums[r][p][0], sums[r][p][1]));
      }
    }
  }
};

}  // namespace

const MatmulKernels kMatmulNeonI8mm = {.quantize = Pairs::quantize,
                                       .multiply = MatmulNeon<Pairs>::multiply};

}  // namespace flotilla::kernels
