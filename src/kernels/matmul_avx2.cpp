#include "kernels/matmul_256.h"

// Compiled for AVX2 with FMA and F16C: see matmul_avx512.cpp on what it may include.
namespace flotilla::kernels {
namespace {

// vpmaddubsw adds two products of an unsigned and a signed byte in 16 bits, saturating at 32,767:
//   nibbles   4 vectors of pairs: 8 * 15 * 127 = 15,240
//   6 bits    2 * 63 * 127 = 16,002: two vectors of pairs fit, 32,004
//   8 bits    2 * 255 * 127 would not, so the weight's size (128 at most) takes its sign to the
//   other
//             factor: 2 * 128 * 127 = 32,512
struct DotAvx2 {
  template <WeightType T>
  static __m256i dot(const __m256i* v, const std::int32_t* q, __m256i start) {
    const __m256i ones = _mm256_set1_epi16(1);
    if constexpr (T == WeightType::Q8_0) {
      // `start` takes back the 128 that are in v; here they are taken from v itself.
      __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const __m256i weight = _mm256_xor_si256(v[j], _mm256_set1_epi8(-128));
        const __m256i signed_q = _mm256_sign_epi8(_mm256_set1_epi32(q[j]), weight);
        const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weight), signed_q);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
      }
      return sum;
    }
    __m256i pairs[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) pairs[j] = _mm256_maddubs_epi16(v[j], _mm256_set1_epi32(q[j]));
    const __m256i low = _mm256_add_epi16(pairs[0], pairs[1]);
    const __m256i high = _mm256_add_epi16(pairs[2], pairs[3]);
    if constexpr (T == WeightType::Q6_K) {
      start = _mm256_add_epi32(start, _mm256_madd_epi16(low, ones));
      return _mm256_add_epi32(start, _mm256_madd_epi16(high, ones));
    }
    return _mm256_add_epi32(start, _mm256_madd_epi16(_mm256_add_epi16(low, high), ones));
  }
};

}  // namespace

const MatmulKernels kMatmulAvx2 = {.quantize = Matmul256<DotAvx2>::quantize,
                                   .multiply = Matmul256<DotAvx2>::multiply};

}  // namespace flotilla::kernels
