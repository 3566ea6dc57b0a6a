#include "kernels/matmul_256.h"

// Compiled for AVX2 and AVX-VNNI: see matmul_avx512.cpp on what it may include.
namespace flotilla::kernels {
namespace {

struct DotVnni {
  template <WeightType T>
  static __m256i dot(const __m256i* v, const std::int32_t* q, __m256i sum) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      sum = _mm256_dpbusd_avx_epi32(sum, v[j], _mm256_set1_epi32(q[j]));
    }
    return sum;
  }
};

}  // namespace

const MatmulKernels kMatmulAvxVnni = {.quantize = Matmul256<DotVnni>::quantize,
                                      .multiply = Matmul256<DotVnni>::multiply};

}  // namespace flotilla::kernels
