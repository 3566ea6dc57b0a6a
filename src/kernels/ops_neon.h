#pragma once

#include <arm_neon.h>
#include <cstdint>

namespace flotilla::kernels {

// 16 floats, and what attention_run.h and row_run.h do with them. For sources compiled for it only.
struct Neon {
  struct Vector {
    float32x4_t a;
    float32x4_t b;
    float32x4_t c;
    float32x4_t d;
  };
  struct Halves {
    uint16x8_t a;
    uint16x8_t b;
    uint16x8_t c;
    uint16x8_t d;
  };
  struct Total {
    float64x2_t low;
    float64x2_t high;
  };

  static Vector load(const float* from) {
    return {vld1q_f32(from), vld1q_f32(from + 4), vld1q_f32(from + 8), vld1q_f32(from + 12)};
  }
  static void store(float* to, Vector x) {
    vst1q_f32(to, x.a);
    vst1q_f32(to + 4, x.b);
    vst1q_f32(to + 8, x.c);
    vst1q_f32(to + 12, x.d);
  }
  static float32x4_t to_floats(uint16x4_t halves) {
    return vcvt_f32_f16(vreinterpret_f16_u16(halves));
  }
  static Vector load_f16(const std::uint16_t* from) {
    const uint16x8_t low = vld1q_u16(from);
    const uint16x8_t high = vld1q_u16(from + 8);
    return {to_floats(vget_low_u16(low)), to_floats(vget_high_u16(low)),
            to_floats(vget_low_u16(high)), to_floats(vget_high_u16(high))};
  }
  static Vector set(float x) {
    const float32x4_t four = vdupq_n_f32(x);
    return {four, four, four, four};
  }
  static Vector add(Vector x, Vector y) {
    return {vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b), vaddq_f32(x.c, y.c), vaddq_f32(x.d, y.d)};
  }
  static Vector sub(Vector x, Vector y) {
    return {vsubq_f32(x.a, y.a), vsubq_f32(x.b, y.b), vsubq_f32(x.c, y.c), vsubq_f32(x.d, y.d)};
  }
  static Vector mul(Vector x, Vector y) {
    return {vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b), vmulq_f32(x.c, y.c), vmulq_f32(x.d, y.d)};
  }
  static Vector div(Vector x, Vector y) {
    return {vdivq_f32(x.a, y.a), vdivq_f32(x.b, y.b), vdivq_f32(x.c, y.c), vdivq_f32(x.d, y.d)};
  }
  static Vector fma(Vector x, Vector y, Vector z) {
    return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
            vfmaq_f32(z.d, x.d, y.d)};
  }
  static Vector max(Vector x, Vector y) {
    return {vmaxq_f32(x.a, y.a), vmaxq_f32(x.b, y.b), vmaxq_f32(x.c, y.c), vmaxq_f32(x.d, y.d)};
  }
  static Vector min(Vector x, Vector y) {
    return {vminq_f32(x.a, y.a), vminq_f32(x.b, y.b), vminq_f32(x.c, y.c), vminq_f32(x.d, y.d)};
  }
  static Vector round(Vector x) {
    return {vrndnq_f32(x.a), vrndnq_f32(x.b), vrndnq_f32(x.c), vrndnq_f32(x.d)};
  }
  // n in [-126, 127]: the exponent's bits.
  static float32x4_t power_of_2(float32x4_t n) {
    const int32x4_t biased = vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127));
    return vreinterpretq_f32_s32(vshlq_n_s32(biased, 23));
  }
  static Vector times_power_of_2(Vector x, Vector n) {
    return mul(x, {power_of_2(n.a), power_of_2(n.b), power_of_2(n.c), power_of_2(n.d)});
  }
  static float32x4_t select_4(int bits, float32x4_t x, float32x4_t other) {
    static constexpr std::uint32_t kBits[4] = {1, 2, 4, 8};
    const uint32x4_t set =
        vtstq_u32(vdupq_n_u32(static_cast<std::uint32_t>(bits)), vld1q_u32(kBits));
    return vbslq_f32(set, x, other);
  }
  static Vector select(std::uint16_t bits, Vector x, float other) {
    const float32x4_t o = vdupq_n_f32(other);
    return {select_4(bits, x.a, o), select_4(bits >> 4, x.b, o), select_4(bits >> 8, x.c, o),
            select_4(bits >> 12, x.d, o)};
  }
  static float32x4_t odd_4(float32x4_t x) {
    return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(1)));
  }
  static Vector odd(Vector x) { return {odd_4(x.a), odd_4(x.b), odd_4(x.c), odd_4(x.d)}; }
  static float largest(Vector x) {
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.a, x.b), vmaxq_f32(x.c, x.d)));
  }

  // Of four vectors' quarters: (0 + 2) + (1 + 3).
  static float32x4_t sums_of_4(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d) {
    const float64x2_t x = vreinterpretq_f64_f32(vaddq_f32(vzip1q_f32(a, b), vzip2q_f32(a, b)));
    const float64x2_t y = vreinterpretq_f64_f32(vaddq_f32(vzip1q_f32(c, d), vzip2q_f32(c, d)));
    return vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(x, y)),
                     vreinterpretq_f32_f64(vzip2q_f64(x, y)));
  }
  using Four = float32x4_t;
  // Of whole vectors: quarters (0 + 1) + (2 + 3).
  static Four sums_of_4(Vector x, Vector y, Vector z, Vector w) {
    const float32x4_t low = vaddq_f32(sums_of_4(x.a, y.a, z.a, w.a), sums_of_4(x.b, y.b, z.b, w.b));
    return vaddq_f32(low, vaddq_f32(sums_of_4(x.c, y.c, z.c, w.c), sums_of_4(x.d, y.d, z.d, w.d)));
  }
  static Vector sums(const Four* four) { return {four[0], four[1], four[2], four[3]}; }

  static Total no_total() { return {vdupq_n_f64(0), vdupq_n_f64(0)}; }
  static void add_to(float64x2_t& total, float64x2_t x) {
    const float64x2_t unit = vdupq_n_f64(0x1.8p20);  // its last place is 2^-32
    total = vaddq_f64(total, vsubq_f64(vaddq_f64(x, unit), unit));
  }
  static void add_to(Total& total, float32x4_t x) {
    add_to(total.low, vcvt_f64_f32(vget_low_f32(x)));
    add_to(total.high, vcvt_high_f64_f32(x));
  }
  static void add_to(Total& total, Vector x) {
    add_to(total, x.a);
    add_to(total, x.b);
    add_to(total, x.c);
    add_to(total, x.d);
  }
  static double sum(Total total) { return vaddvq_f64(vaddq_f64(total.low, total.high)); }

  static Halves no_halves() {
    const uint16x8_t zero = vdupq_n_u16(0);
    return {zero, zero, zero, zero};
  }
  static Halves load_halves(const std::uint16_t* from) {
    return {vld1q_u16(from), vld1q_u16(from + 8), vld1q_u16(from + 16), vld1q_u16(from + 24)};
  }
  static Halves load_16_halves(const std::uint16_t* from) {
    const uint16x8_t zero = vdupq_n_u16(0);
    return {vld1q_u16(from), vld1q_u16(from + 8), zero, zero};
  }
  static void store_halves(std::uint16_t* to, Halves x) {
    vst1q_u16(to, x.a);
    vst1q_u16(to + 8, x.b);
    vst1q_u16(to + 16, x.c);
    vst1q_u16(to + 24, x.d);
  }
  static uint16x8_t max_size(uint16x8_t x, uint16x8_t y) {
    return vmaxq_u16(x, vandq_u16(y, vdupq_n_u16(0x7fff)));
  }
  static Halves max_size(Halves x, Halves y) {
    return {max_size(x.a, y.a), max_size(x.b, y.b), max_size(x.c, y.c), max_size(x.d, y.d)};
  }
  static float largest_half(Halves x) {
    const uint16_t most = vmaxvq_u16(vmaxq_u16(vmaxq_u16(x.a, x.b), vmaxq_u16(x.c, x.d)));
    return vgetq_lane_f32(to_floats(vdup_n_u16(most)), 0);
  }
};

}  // namespace flotilla::kernels
