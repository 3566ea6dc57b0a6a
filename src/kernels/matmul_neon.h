#pragma once

#include <arm_neon.h>

#include "kernels/matmul_sets.h"

// Mat-mul with vectors of 128 bits: a group's 16 rows are four quarters of 4. `Set` says how an
// instruction set multiplies bytes:
//   kSigned     the bytes of weights are signed, so that Q8_0's come without their 128
//   dot         adds four vectors of weights times 16 activations of a column
//   run         computes a pass, by NeonDots or in its own way
namespace flotilla::kernels {

// All columns of a tile and, of a group's rows, some quarters from `quarter` on.
struct NeonPass {
  const std::byte* group;
  int blocks;
  int quarter;
  const std::int8_t* quants;
  const BlockScale* scales;
};

using PassResults = float[kTileColumns][kGroupRows];

// A block of 4 rows.
template <class Set, WeightType T>
struct NeonBlock {
  uint8x16_t v[8];  // v[j]: weights 4j to 4j + 3 of each row
  float32x4_t scale;
  float32x4_t scale_high;
  float32x4_t minimum;

  // `super` as packed, before the run of 8 blocks.
  static NeonBlock unpack(const std::byte* at, const std::byte* super, int quarter) {
    NeonBlock block;
    if constexpr (T == WeightType::Q4_K) {
      const float32x4_t minimum = vnegq_f32(load_f16(super + 32 + 8 * quarter));
      block.scale = vmulq_f32(load_f16(super + 8 * quarter), load_u8(at + 4 * quarter));
      block.minimum = vmulq_f32(minimum, load_u8(at + 16 + 4 * quarter));
    } else if constexpr (T == WeightType::Q6_K) {
      const float32x4_t outer = load_f16(super + 8 * quarter);
      block.scale = vmulq_f32(outer, load_i8(at + 4 * quarter));
      block.scale_high = vmulq_f32(outer, load_i8(at + 16 + 4 * quarter));
    } else {
      block.scale = load_f16(at + 8 * quarter);
      if constexpr (T == WeightType::Q4_1) block.minimum = load_f16(at + 32 + 8 * quarter);
    }
    block.unpack_quants(at + layout_of(T).scale_bytes + 16 * quarter);
    return block;
  }

 private:
  static float32x4_t load_f16(const std::byte* at) {
    const uint16x4_t halves = vld1_u16(reinterpret_cast<const std::uint16_t*>(at));
    return vcvt_f32_f16(vreinterpret_f16_u16(halves));
  }
  static uint32x2_t load_4(const std::byte* at) {
    std::uint32_t four;
    __builtin_memcpy(&four, at, sizeof(four));
    return vdup_n_u32(four);
  }
  static float32x4_t load_u8(const std::byte* at) {
    const uint16x8_t words = vmovl_u8(vreinterpret_u8_u32(load_4(at)));
    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(words)));
  }
  static float32x4_t load_i8(const std::byte* at) {
    const int16x8_t words = vmovl_s8(vreinterpret_s8_u32(load_4(at)));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(words)));
  }
  static uint8x16_t load(const std::byte* at) {
    return vld1q_u8(reinterpret_cast<const std::uint8_t*>(at));
  }

  void unpack_quants(const std::byte* quants) {
    if constexpr (T == WeightType::Q8_0) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        v[j] = load(quants + 64 * j);
        if constexpr (Set::kSigned) v[j] = veorq_u8(v[j], vdupq_n_u8(0x80));
      }
      return;
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const uint8x16_t x = load(quants + 64 * j);
      v[j] = vandq_u8(x, vdupq_n_u8(15));
      v[j + 4] = vshrq_n_u8(x, 4);
    }
    if constexpr (T == WeightType::Q6_K) {
      const uint8x16_t upper = vdupq_n_u8(0x30);
#pragma GCC unroll 2
      for (int part = 0; part < 2; ++part) {
        const uint8x16_t x = load(quants + 256 + 64 * part);
        uint8x16_t* to = v + 4 * part;
        to[0] = vorrq_u8(to[0], vandq_u8(vshlq_n_u8(x, 4), upper));
        to[1] = vorrq_u8(to[1], vandq_u8(vshlq_n_u8(x, 2), upper));
        to[2] = vorrq_u8(to[2], vandq_u8(x, upper));
        to[3] = vorrq_u8(to[3], vandq_u8(vshrq_n_u8(x, 2), upper));
      }
    }
  }
};

// Where the integer sums of a block begin: what takes back the zero points. `high` for the second
// half of Q6_K, which has a sum of its own.
struct NeonStart {
  int32x4_t low;
  int32x4_t high;
};

template <class Set, WeightType T>
NeonStart neon_start(int32x4_t start, int32x4_t start_high) {
  const int32x4_t zero = vdupq_n_s32(0);
  if constexpr (T == WeightType::Q4_0) return {start, zero};
  if constexpr (T == WeightType::Q8_0 && !Set::kSigned) return {vshlq_n_s32(start, 4), zero};
  if constexpr (T == WeightType::Q6_K) {
    return {vshlq_n_s32(vsubq_s32(start, start_high), 2), vshlq_n_s32(start_high, 2)};
  }
  return {zero, zero};
}

// A pass with 4 rows of one column in a vector.
template <class Set>
class NeonDots {
 public:
  template <WeightType T, int Quarters, int N>
  static void run(const NeonPass& pass, PassResults& results) {
    float32x4_t sums[Quarters][N];
#pragma GCC unroll 4
    for (int r = 0; r < Quarters; ++r) {
#pragma GCC unroll 16
      for (int c = 0; c < N; ++c) sums[r][c] = vdupq_n_f32(0);
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
        const auto block = NeonBlock<Set, T>::unpack(group, super, pass.quarter + r);
#pragma GCC unroll 16
        for (int c = 0; c < N; ++c) {
          sums[r][c] = add_column(block, quants + kBlock * c, scales[c], sums[r][c]);
        }
      }
      group += layout_of(T).block_bytes();
      quants += kBlock * N;
      scales += N;
    }
#pragma GCC unroll 4
    for (int r = 0; r < Quarters; ++r) {
#pragma GCC unroll 16
      for (int c = 0; c < N; ++c) vst1q_f32(results[c] + 4 * (pass.quarter + r), sums[r][c]);
    }
  }

 private:
  template <WeightType T>
  static float32x4_t add_column(const NeonBlock<Set, T>& block, const std::int8_t* quants,
                                const BlockScale& column, float32x4_t sum) {
    const NeonStart start =
        neon_start<Set, T>(vdupq_n_s32(column.start), vdupq_n_s32(column.start_high));
    const int8x16_t q_high = vld1q_s8(quants + 16);
    int32x4_t dot = Set::dot(block.v, vld1q_s8(quants), start.low);
    if constexpr (T == WeightType::Q6_K) {
      sum = vfmaq_f32(sum, vcvtq_f32_s32(dot), vmulq_n_f32(block.scale, column.scale));
      dot = Set::dot(block.v + 4, q_high, start.high);
      return vfmaq_f32(sum, vcvtq_f32_s32(dot), vmulq_n_f32(block.scale_high, column.scale));
    }
    dot = Set::dot(block.v + 4, q_high, dot);
    sum = vfmaq_f32(sum, vcvtq_f32_s32(dot), vmulq_n_f32(block.scale, column.scale));
    if constexpr (T == WeightType::Q4_1 || T == WeightType::Q4_K) {
      sum = vfmaq_f32(sum, block.minimum, vdupq_n_f32(column.scaled_sum));
    }
    return sum;
  }
};

template <class Set>
class MatmulNeon {
 public:
  static void multiply(const PackedMatrix& weights, const Activations& activations, int first_group,
                       int last_group, const MatmulOutput& output) {
    switch (weights.type) {
      case WeightType::Q4_0:
        return run<WeightType::Q4_0>(weights, activations, first_group, last_group, output);
      case WeightType::Q4_1:
        return run<WeightType::Q4_1>(weights, activations, first_group, last_group, output);
      case WeightType::Q8_0:
        return run<WeightType::Q8_0>(weights, activations, first_group, last_group, output);
      case WeightType::Q4_K:
        return run<WeightType::Q4_K>(weights, activations, first_group, last_group, output);
      case WeightType::Q6_K:
        return run<WeightType::Q6_K>(weights, activations, first_group, last_group, output);
    }
  }

 private:
  // 16 sums and 8 vectors of weights leave 8 of 32 registers to work with: few columns take all
  // quarters at once, so that weights are read in one go; many share what unpacking costs.
  template <WeightType T, int N>
  static void run_columns(NeonPass pass, int columns, PassResults& results) {
    if constexpr (N > 1) {
      if (columns < N) return run_columns<T, N - 1>(pass, columns, results);
    }
    constexpr int kQuarters = N <= 4 ? 4 : N <= 8 ? 2 : 1;
    for (pass.quarter = 0; pass.quarter < 4; pass.quarter += kQuarters) {
      Set::template run<T, kQuarters, N>(pass, results);
    }
  }

  template <WeightType T>
  static void run(const PackedMatrix& weights, const Activations& activations, int first_group,
                  int last_group, const MatmulOutput& output) {
    for (int group = first_group; group < last_group; ++group) {
      const int left = weights.rows - group * kGroupRows;
      const int rows = left < kGroupRows ? left : kGroupRows;
      for (int index = 0; index < tiles_of(activations.columns); ++index) {
        const Tile tile = tile_at(activations.columns, index);
        const NeonPass pass{
            .group = weights.data + static_cast<std::size_t>(group) * weights.group_bytes(),
            .blocks = weights.depth / kBlock,
            .quarter = 0,
            .quants = activations.tile_quants(tile),
            .scales = activations.tile_scales(tile)};
        PassResults results;
        run_columns<T, kTileColumns>(pass, tile.width, results);
        for (int c = 0; c < tile.width; ++c) {
          float* to = output.data + (tile.first + c) * output.column_stride + group * kGroupRows;
          __builtin_memcpy(to, results[c], static_cast<std::size_t>(rows) * sizeof(float));
        }
      }
    }
  }
};

// 32 quantised activations.
template <class Set>
struct NeonQuants {
  int8x16_t low;
  int8x16_t high;
  BlockScale scale;

  static NeonQuants of(const float* from) {
    float32x4_t x[8];
    float32x4_t most = vdupq_n_f32(0);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      x[i] = vld1q_f32(from + 4 * i);
      most = vmaxq_f32(most, vabsq_f32(x[i]));
    }
    const float scale = vmaxvq_f32(most) / 127.0F;
    const float inverse = scale != 0 ? 1.0F / scale : 0.0F;
    const int8x16_t low = to_bytes(x, inverse);
    const int8x16_t high = to_bytes(x + 4, inverse);
    const int sum_high = vaddlvq_s8(high);
    const int sum = vaddlvq_s8(low) + sum_high;
    return {low,
            high,
            {.scale = scale,
             .scaled_sum = scale * static_cast<float>(sum),
             .start = -8 * sum,
             .start_high = -8 * sum_high}};
  }

 private:
  static int8x16_t to_bytes(const float32x4_t* x, float inverse) {
    int16x4_t words[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      words[i] = vqmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(x[i], inverse)));
    }
    return vcombine_s8(vqmovn_s16(vcombine_s16(words[0], words[1])),
                       vqmovn_s16(vcombine_s16(words[2], words[3])));
  }
};

}  // namespace flotilla::kernels
