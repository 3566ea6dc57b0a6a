#include <arm_neon.h>

#include "kernels/attention_run.h"
#include "kernels/ops_neon.h"
#include "kernels/row_run.h"

namespace flotilla::kernels {
namespace {

// Byte i is 2^(i % 8) where mask[i] is not -inf, else 0.
uint8x16_t seen_bits(const std::uint16_t* mask) {
  static constexpr std::uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                             1, 2, 4, 8, 16, 32, 64, 128};
  const uint16x8_t hidden = vdupq_n_u16(0xfc00);
  const uint8x8_t low = vmovn_u16(vceqq_u16(vld1q_u16(mask), hidden));
  const uint8x8_t high = vmovn_u16(vceqq_u16(vld1q_u16(mask + 8), hidden));
  return vbicq_u8(vld1q_u8(kBits), vcombine_u8(low, high));
}

void visible_bits(const std::uint16_t* mask, int cells, std::uint64_t* bits) {
  int at = 0;
  for (; at + 64 <= cells; at += 64) {
    // Three sums of neighbours make a byte of eight.
    const uint8x16_t low = vpaddq_u8(seen_bits(mask + at), seen_bits(mask + at + 16));
    const uint8x16_t high = vpaddq_u8(seen_bits(mask + at + 32), seen_bits(mask + at + 48));
    const uint8x16_t pairs = vpaddq_u8(low, high);
    bits[at / 64] = vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(pairs, pairs)), 0);
  }
  if (at == cells) return;
  std::uint64_t rest = 0;
  for (int i = at; i < cells; ++i) {
    rest |= static_cast<std::uint64_t>(mask[i] != 0xfc00) << (i - at);
  }
  bits[at / 64] = rest;
}

}  // namespace

const AttentionKernels kAttentionNeon = {.visible_bits = visible_bits,
                                         .attend_block = attend_block_with<Neon>};

const RowKernels kRowsNeon = RowRun<Neon>::kKernels;

}  // namespace flotilla::kernels
