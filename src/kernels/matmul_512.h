#pragma once

#include <immintrin.h>

#include "kernels/packed_weights.h"

// Packed weights in vectors of 512 bits: lane i of each is row i of a group. `Set` is a type of the
// including file's own, so that its functions are too: files are compiled for different
// instructions.
namespace flotilla::kernels {

template <class Set>
struct Weights512 {
  // One block of 16 rows, unpacked to bytes: v[j] holds weights 4j to 4j + 3 of each row, unsigned.
  struct Block {
    __m512i v[8];
    __m512 scale;
    __m512 scale_high;  // Q6_K: of the second half
    __m512 minimum;     // Q4_1, Q4_K
  };

  // Q4_K's and Q6_K's outer scales.
  struct Super {
    __m512 scale;
    __m512 minimum;
  };

  static __m512 load_f16(const std::byte* at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  }

  static __m512 load_u8(const std::byte* at) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
  }

  static __m512 load_i8(const std::byte* at) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
  }

  template <WeightType T>
  [[gnu::always_inline]] static void load_super(const std::byte* at, Super& super) {
    super.scale = load_f16(at);
    if constexpr (T == WeightType::Q4_K) {
      super.minimum = _mm512_sub_ps(_mm512_setzero_ps(), load_f16(at + 32));
    }
  }

  template <WeightType T>
  [[gnu::always_inline]] static void load_scales(const std::byte* at, const Super& super,
                                                 Block& block) {
    if constexpr (T == WeightType::Q4_K) {
      block.scale = _mm512_mul_ps(super.scale, load_u8(at));
      block.minimum = _mm512_mul_ps(super.minimum, load_u8(at + 16));
    } else if constexpr (T == WeightType::Q6_K) {
      block.scale = _mm512_mul_ps(super.scale, load_i8(at));
      block.scale_high = _mm512_mul_ps(super.scale, load_i8(at + 16));
    } else {
      block.scale = load_f16(at);
      if constexpr (T == WeightType::Q4_1) block.minimum = load_f16(at + 32);
    }
  }

  template <WeightType T>
  [[gnu::always_inline]] static void unpack(const std::byte* quants, Block& block) {
    if constexpr (T == WeightType::Q8_0) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) block.v[j] = _mm512_loadu_si512(quants + 64 * j);
      return;
    }
    const __m512i nibble = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m512i x = _mm512_loadu_si512(quants + 64 * j);
      block.v[j] = _mm512_and_si512(x, nibble);
      block.v[j + 4] = _mm512_and_si512(_mm512_srli_epi16(x, 4), nibble);
    }
    if constexpr (T == WeightType::Q6_K) {
      const __m512i upper = _mm512_set1_epi8(0x30);
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const __m512i x = _mm512_loadu_si512(quants + 256 + 64 * half);
        __m512i* v = block.v + 4 * half;
        v[0] = _mm512_or_si512(v[0], _mm512_and_si512(_mm512_slli_epi16(x, 4), upper));
        v[1] = _mm512_or_si512(v[1], _mm512_and_si512(_mm512_slli_epi16(x, 2), upper));
        v[2] = _mm512_or_si512(v[2], _mm512_and_si512(x, upper));
        v[3] = _mm512_or_si512(v[3], _mm512_and_si512(_mm512_srli_epi16(x, 2), upper));
      }
    }
  }
};

}  // namespace flotilla::kernels
