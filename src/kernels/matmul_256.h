#pragma once

#include <immintrin.h>

#include "kernels/matmul_sets.h"

// Mat-mul with vectors of 256 bits: a group's 16 rows are two halves of 8. `Dot` says how an
// instruction set multiplies bytes.
namespace flotilla::kernels {

template <class Dot>
class Matmul256 {
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

  static void quantize(const float* column, int blocks, std::int8_t* quants, BlockScale* scales,
                       TilePlace place) {
    for (int b = 0; b < blocks; ++b) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(b) * place.width;
      quantize_block(column + b * kBlock, quants + at * kBlock, scales[at]);
    }
  }

 private:
  // Columns at once: 4 sums, 8 of weights and 4 to work with fill the 16 registers.
  static constexpr int kColumns = 4;

  struct Block {
    __m256i v[8];  // v[j]: weights 4j to 4j + 3 of 8 rows
    __m256 scale;
    __m256 scale_high;
    __m256 minimum;
  };

  static __m256 load_f16(const std::byte* at) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  static __m256 load_u8(const std::byte* at) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))));
  }
  static __m256 load_i8(const std::byte* at) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))));
  }
  static __m256i load(const std::byte* at) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  }

  // Half 0 or 1 of the group's rows; `super` as packed, before the run of 8 blocks.
  template <WeightType T>
  static Block unpack(const std::byte* at, const std::byte* super, int half) {
    Block block{};
    if constexpr (T == WeightType::Q4_K) {
      const __m256 minimum = _mm256_sub_ps(_mm256_setzero_ps(), load_f16(super + 32 + 16 * half));
      block.scale = _mm256_mul_ps(load_f16(super + 16 * half), load_u8(at + 8 * half));
      block.minimum = _mm256_mul_ps(minimum, load_u8(at + 16 + 8 * half));
    } else if constexpr (T == WeightType::Q6_K) {
      const __m256 outer = load_f16(super + 16 * half);
      block.scale = _mm256_mul_ps(outer, load_i8(at + 8 * half));
      block.scale_high = _mm256_mul_ps(outer, load_i8(at + 16 + 8 * half));
    } else {
      block.scale = load_f16(at + 16 * half);
      if constexpr (T == WeightType::Q4_1) block.minimum = load_f16(at + 32 + 16 * half);
    }
    const std::byte* quants = at + layout_of(T).scale_bytes + 32 * half;
    if constexpr (T == WeightType::Q8_0) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) block.v[j] = load(quants + 64 * j);
      return block;
    }
    const __m256i nibble = _mm256_set1_epi8(15);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m256i x = load(quants + 64 * j);
      block.v[j] = _mm256_and_si256(x, nibble);
      block.v[j + 4] = _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble);
    }
    if constexpr (T == WeightType::Q6_K) {
      const __m256i upper = _mm256_set1_epi8(0x30);
#pragma GCC unroll 2
      for (int part = 0; part < 2; ++part) {
        const __m256i x = load(quants + 256 + 64 * part);
        __m256i* v = block.v + 4 * part;
        v[0] = _mm256_or_si256(v[0], _mm256_and_si256(_mm256_slli_epi16(x, 4), upper));
        v[1] = _mm256_or_si256(v[1], _mm256_and_si256(_mm256_slli_epi16(x, 2), upper));
        v[2] = _mm256_or_si256(v[2], _mm256_and_si256(x, upper));
        v[3] = _mm256_or_si256(v[3], _mm256_and_si256(_mm256_srli_epi16(x, 2), upper));
      }
    }
    return block;
  }

  template <WeightType T>
  static __m256 add_column(const Block& block, const std::int8_t* quants, const BlockScale& column,
                           __m256 sum) {
    const auto* q = reinterpret_cast<const std::int32_t*>(quants);
    __m256i start = _mm256_setzero_si256();
    __m256i start_high = start;
    if constexpr (T == WeightType::Q4_0) start = _mm256_set1_epi32(column.start);
    if constexpr (T == WeightType::Q8_0) {
      start = _mm256_slli_epi32(_mm256_set1_epi32(column.start), 4);
    }
    if constexpr (T == WeightType::Q6_K) {
      start_high = _mm256_slli_epi32(_mm256_set1_epi32(column.start_high), 2);
      start = _mm256_sub_epi32(_mm256_slli_epi32(_mm256_set1_epi32(column.start), 2), start_high);
    }
    const __m256i low = Dot::template dot<T>(block.v, q, start);
    const __m256i high = Dot::template dot<T>(block.v + 4, q + 4, start_high);
    const __m256 scale = _mm256_set1_ps(column.scale);
    if constexpr (T == WeightType::Q6_K) {
      sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(low), _mm256_mul_ps(block.scale, scale), sum);
      return _mm256_fmadd_ps(_mm256_cvtepi32_ps(high), _mm256_mul_ps(block.scale_high, scale), sum);
    }
    const __m256 dot = _mm256_cvtepi32_ps(_mm256_add_epi32(low, high));
    sum = _mm256_fmadd_ps(dot, _mm256_mul_ps(block.scale, scale), sum);
    if constexpr (T == WeightType::Q4_1 || T == WeightType::Q4_K) {
      sum = _mm256_fmadd_ps(block.minimum, _mm256_set1_ps(column.scaled_sum), sum);
    }
    return sum;
  }

  // Columns [first, first + N) of a tile, 8 rows.
  template <WeightType T, int N>
  static void run_columns(const std::byte* group, int blocks, int half, const std::int8_t* quants,
                          const BlockScale* scales, int tile_width,
                          float (&results)[kColumns][16]) {
    __m256 sums[N];
#pragma GCC unroll 4
    for (int c = 0; c < N; ++c) sums[c] = _mm256_setzero_ps();
    const std::byte* super = group;
    for (int b = 0; b < blocks; ++b) {
      if (layout_of(T).super_bytes != 0 && b % kSuperBlock == 0) {
        super = group;
        group += layout_of(T).super_bytes;
      }
      const Block block = unpack<T>(group, super, half);
      group += layout_of(T).block_bytes();
#pragma GCC unroll 4
      for (int c = 0; c < N; ++c) {
        sums[c] = add_column<T>(block, quants + kBlock * c, scales[c], sums[c]);
      }
      quants += kBlock * tile_width;
      scales += tile_width;
    }
#pragma GCC unroll 4
    for (int c = 0; c < N; ++c) _mm256_storeu_ps(results[c] + 8 * half, sums[c]);
  }

  template <WeightType T>
  static void run(const PackedMatrix& weights, const Activations& activations, int first_group,
                  int last_group, const MatmulOutput& output) {
    for (int group = first_group; group < last_group; ++group) {
      const std::byte* data =
          weights.data + static_cast<std::size_t>(group) * weights.group_bytes();
      const int left = weights.rows - group * kGroupRows;
      const int rows = left < kGroupRows ? left : kGroupRows;
      for (int index = 0; index < tiles_of(activations.columns); ++index) {
        const Tile tile = tile_at(activations.columns, index);
        for (int first = 0; first < tile.width; first += kColumns) {
          const int count = tile.width - first < kColumns ? tile.width - first : kColumns;
          float results[kColumns][16];
          for (int half = 0; half < 2; ++half) {
            const std::int8_t* quants = activations.tile_quants(tile) + kBlock * first;
            const BlockScale* scales = activations.tile_scales(tile) + first;
            const int blocks = weights.depth / kBlock;
            switch (count) {
              case 1:
                run_columns<T, 1>(data, blocks, half, quants, scales, tile.width, results);
                break;
              case 2:
                run_columns<T, 2>(data, blocks, half, quants, scales, tile.width, results);
                break;
              case 3:
                run_columns<T, 3>(data, blocks, half, quants, scales, tile.width, results);
                break;
              default:
                run_columns<T, 4>(data, blocks, half, quants, scales, tile.width, results);
                break;
            }
          }
          for (int c = 0; c < count; ++c) {
            float* to =
                output.data + (tile.first + first + c) * output.column_stride + group * kGroupRows;
            __builtin_memcpy(to, results[c], static_cast<std::size_t>(rows) * sizeof(float));
          }
        }
      }
    }
  }

  static int sum_of_16(__m128i bytes) {
    const __m256i pairs = _mm256_madd_epi16(_mm256_cvtepi8_epi16(bytes), _mm256_set1_epi16(1));
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1)));
  }

  static void quantize_block(const float* from, std::int8_t* to, BlockScale& block) {
    const __m256 sign = _mm256_set1_ps(-0.0F);
    __m256 x[4];
    __m256 most = _mm256_setzero_ps();
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      x[i] = _mm256_loadu_ps(from + 8 * i);
      most = _mm256_max_ps(most, _mm256_andnot_ps(sign, x[i]));
    }
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(most), _mm256_extractf128_ps(most, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    const float largest = _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
    block.scale = largest / 127.0F;
    const __m256 inverse = _mm256_set1_ps(block.scale != 0 ? 1.0F / block.scale : 0.0F);
    int sums[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(x[2 * half], inverse));
      const __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(x[2 * half + 1], inverse));
      const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
      const __m128i bytes =
          _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16 * half), bytes);
      sums[half] = sum_of_16(bytes);
    }
    block.start = -8 * (sums[0] + sums[1]);
    block.start_high = -8 * sums[1];
    block.scaled_sum = block.scale * static_cast<float>(sums[0] + sums[1]);
  }
};

}  // namespace flotilla::kernels
