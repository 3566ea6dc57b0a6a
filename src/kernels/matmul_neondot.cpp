#include "kernels/matmul_neon.h"

// Compiled for NEON with products of bytes (Armv8.2): see matmul_avx512.cpp on what it may include.
namespace flotilla::kernels {
namespace {

// sdot multiplies signed bytes: nibbles and 6 bits are below 128, Q8_0's are signed when unpacked.
struct SignedDot {
  static constexpr bool kSigned = true;

  static int32x4_t dot(const uint8x16_t* v, int8x16_t q, int32x4_t sum) {
    sum = vdotq_laneq_s32(sum, vreinterpretq_s8_u8(v[0]), q, 0);
    sum = vdotq_laneq_s32(sum, vreinterpretq_s8_u8(v[1]), q, 1);
    sum = vdotq_laneq_s32(sum, vreinterpretq_s8_u8(v[2]), q, 2);
    return vdotq_laneq_s32(sum, vreinterpretq_s8_u8(v[3]), q, 3);
  }

  template <WeightType T, int Quarters, int N>
  static void run(const NeonPass& pass, PassResults& results) {
    NeonDots<SignedDot>::run<T, Quarters, N>(pass, results);
  }

  static void quantize(const float* column, int blocks, std::int8_t* quants, BlockScale* scales,
                       TilePlace place) {
    for (int b = 0; b < blocks; ++b) {
      const auto block = NeonQuants<SignedDot>::of(column + b * kBlock);
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(b) * place.width;
      vst1q_s8(quants + at * kBlock, block.low);
      vst1q_s8(quants + at * kBlock + 16, block.high);
      scales[at] = block.scale;
    }
  }
};

}  // namespace

const MatmulKernels kMatmulNeonDot = {.quantize = SignedDot::quantize,
                                      .multiply = MatmulNeon<SignedDot>::multiply};

}  // namespace flotilla::kernels
