#include <immintrin.h>

#include "kernels/attention_run.h"
#include "kernels/ops_avx512.h"
#include "kernels/row_run.h"

// Compiled for AVX512: see matmul_avx512.cpp on what it may include.
namespace flotilla::kernels {
namespace {

void visible_bits(const std::uint16_t* mask, int cells, std::uint64_t* bits) {
  const __m512i hidden = _mm512_set1_epi16(static_cast<short>(0xfc00));
  int at = 0;
  for (; at + 64 <= cells; at += 64) {
    const std::uint64_t low = _mm512_cmpneq_epi16_mask(_mm512_loadu_si512(mask + at), hidden);
    const std::uint64_t high = _mm512_cmpneq_epi16_mask(_mm512_loadu_si512(mask + at + 32), hidden);
    bits[at / 64] = low | high << 32;
  }
  if (at == cells) return;
  std::uint64_t rest = 0;
  for (int i = at; i < cells; ++i) {
    rest |= static_cast<std::uint64_t>(mask[i] != 0xfc00) << (i - at);
  }
  bits[at / 64] = rest;
}

}  // namespace

const AttentionKernels kAttentionAvx512Vnni = {.visible_bits = visible_bits,
                                               .attend_block = attend_block_with<Avx512>};

const RowKernels kRowsAvx512 = RowRun<Avx512>::kKernels;

}  // namespace flotilla::kernels
