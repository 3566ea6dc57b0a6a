#pragma once

#include <cstdint>
#include <immintrin.h>

namespace flotilla::kernels {

// 16 floats, and what attention_run.h and row_run.h do with them. For sources compiled for it only.
struct Avx512 {
  using Vector = __m512;
  using Halves = __m512i;  // 32 of 16 bits
  using Total = __m512d;

  static Vector load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Vector x) { _mm512_storeu_ps(to, x); }
  static Vector load_f16(const std::uint16_t* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static Vector set(float x) { return _mm512_set1_ps(x); }
  static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static Vector sub(Vector a, Vector b) { return _mm512_sub_ps(a, b); }
  static Vector mul(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  static Vector div(Vector a, Vector b) { return _mm512_div_ps(a, b); }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  static Vector max(Vector a, Vector b) { return _mm512_max_ps(a, b); }
  static Vector min(Vector a, Vector b) { return _mm512_min_ps(a, b); }
  static Vector round(Vector x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Vector times_power_of_2(Vector x, Vector n) { return _mm512_scalef_ps(x, n); }
  // Lanes of `x` whose bit is set, else `other`.
  static Vector select(std::uint16_t bits, Vector x, float other) {
    return _mm512_mask_mov_ps(_mm512_set1_ps(other), bits, x);
  }
  static Vector odd(Vector x) {
    return _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(x), _mm512_set1_epi32(1)));
  }
  static float largest(Vector x) { return _mm512_reduce_max_ps(x); }

  // The sums of 16 vectors' lanes, four and four. In each quarter (0 + 2) + (1 + 3), then (q0 + q1)
  // + (q2 + q3): 15 additions and 30 shuffles.
  using Four = __m512;
  static Four sums_of_4(Vector a, Vector b, Vector c, Vector d) {
    const __m512d x =
        _mm512_castps_pd(_mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)));
    const __m512d y =
        _mm512_castps_pd(_mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d)));
    return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)),
                         _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
  }
  static Vector sums(const Four* four) {
    const __m512 x = _mm512_add_ps(_mm512_shuffle_f32x4(four[0], four[1], 0x88),
                                   _mm512_shuffle_f32x4(four[0], four[1], 0xdd));
    const __m512 y = _mm512_add_ps(_mm512_shuffle_f32x4(four[2], four[3], 0x88),
                                   _mm512_shuffle_f32x4(four[2], four[3], 0xdd));
    return _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x88), _mm512_shuffle_f32x4(x, y, 0xdd));
  }

  static Total no_total() { return _mm512_setzero_pd(); }
  static void add_to(Total& total, Vector x) {
    const __m512d unit = _mm512_set1_pd(0x1.8p20);  // its last place is 2^-32
    const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
    const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
    total = _mm512_add_pd(total, _mm512_sub_pd(_mm512_add_pd(low, unit), unit));
    total = _mm512_add_pd(total, _mm512_sub_pd(_mm512_add_pd(high, unit), unit));
  }
  static double sum(Total total) { return _mm512_reduce_add_pd(total); }

  static Halves no_halves() { return _mm512_setzero_si512(); }
  static Halves load_halves(const std::uint16_t* from) { return _mm512_loadu_si512(from); }
  static Halves load_16_halves(const std::uint16_t* from) {
    return _mm512_zextsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static void store_halves(std::uint16_t* to, Halves x) { _mm512_storeu_si512(to, x); }
  static Halves max_size(Halves a, Halves b) {
    return _mm512_max_epu16(a, _mm512_and_si512(b, _mm512_set1_epi16(0x7fff)));
  }
  static float largest_half(Halves x) {
    const __m512 low = _mm512_cvtph_ps(_mm512_castsi512_si256(x));
    const __m512 high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(x, 1));
    return _mm512_reduce_max_ps(_mm512_max_ps(low, high));
  }
};

}  // namespace flotilla::kernels
