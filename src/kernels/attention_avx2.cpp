#include <immintrin.h>

#include "kernels/attention_run.h"
#include "kernels/ops_avx2.h"
#include "kernels/row_run.h"

// Compiled for AVX2 with FMA and F16C: see matmul_avx512.cpp on what it may include.
namespace flotilla::kernels {
namespace {

void visible_bits(const std::uint16_t* mask, int cells, std::uint64_t* bits) {
  const __m256i hidden = _mm256_set1_epi16(static_cast<short>(0xfc00));
  const int words = (cells + 63) / 64;
  for (int word = 0; word < words; ++word) bits[word] = 0;
  int at = 0;
  for (; at + 16 <= cells; at += 16) {
    const __m256i same = _mm256_cmpeq_epi16(Avx2::load_256(mask + at), hidden);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(same), _mm256_extracti128_si256(same, 1));
    const auto seen = static_cast<std::uint64_t>(~_mm_movemask_epi8(bytes) & 0xffff);
    bits[at / 64] |= seen << at % 64;
  }
  for (; at < cells; ++at) {
    bits[at / 64] |= static_cast<std::uint64_t>(mask[at] != 0xfc00) << at % 64;
  }
}

}  // namespace

const AttentionKernels kAttentionAvx2 = {.visible_bits = visible_bits,
                                         .attend_block = attend_block_with<Avx2>};

const RowKernels kRowsAvx2 = RowRun<Avx2>::kKernels;

}  // namespace flotilla::kernels
