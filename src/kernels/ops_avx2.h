#pragma once

#include <cstdint>
#include <immintrin.h>

namespace flotilla::kernels {

// 16 floats, and what attention_run.h and row_run.h do with them. For sources compiled for it only.
struct Avx2 {
  struct Vector {
    __m256 low;
    __m256 high;
  };
  struct Halves {
    __m256i low;
    __m256i high;
  };
  using Total = __m256d;

  static Vector load(const float* from) {
    return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
  }
  static void store(float* to, Vector x) {
    _mm256_storeu_ps(to, x.low);
    _mm256_storeu_ps(to + 8, x.high);
  }
  static __m256 load_8_f16(const std::uint16_t* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static Vector load_f16(const std::uint16_t* from) {
    return {load_8_f16(from), load_8_f16(from + 8)};
  }
  static Vector set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Vector add(Vector a, Vector b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  static Vector sub(Vector a, Vector b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  static Vector mul(Vector a, Vector b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  static Vector div(Vector a, Vector b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  static Vector fma(Vector a, Vector b, Vector c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static Vector max(Vector a, Vector b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  static Vector min(Vector a, Vector b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }
  static Vector round(Vector x) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(x.low, kNearest), _mm256_round_ps(x.high, kNearest)};
  }
  // n in [-126, 127]: the exponent's bits.
  static __m256 power_of_2(__m256 n) {
    const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }
  static Vector times_power_of_2(Vector x, Vector n) {
    return mul(x, {power_of_2(n.low), power_of_2(n.high)});
  }
  static __m256 lanes_of(int bits) {
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i set = _mm256_and_si256(_mm256_set1_epi32(bits), bit);
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, bit));
  }
  static Vector select(std::uint16_t bits, Vector x, float other) {
    const __m256 o = _mm256_set1_ps(other);
    return {_mm256_blendv_ps(o, x.low, lanes_of(bits & 255)),
            _mm256_blendv_ps(o, x.high, lanes_of(bits >> 8))};
  }
  static Vector odd(Vector x) {
    const __m256 one = _mm256_castsi256_ps(_mm256_set1_epi32(1));
    return {_mm256_or_ps(x.low, one), _mm256_or_ps(x.high, one)};
  }
  static float largest(Vector x) {
    const __m256 eight = _mm256_max_ps(x.low, x.high);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
  }

  // Of four vectors' halves: in each quarter (0 + 2) + (1 + 3), then the sum of both quarters.
  static __m128 sums_of_4(__m256 a, __m256 b, __m256 c, __m256 d) {
    const __m256 x = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    const __m256 y = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    const __m256d u = _mm256_castps_pd(x);
    const __m256d v = _mm256_castps_pd(y);
    const __m256 sum = _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(u, v)),
                                     _mm256_castpd_ps(_mm256_unpackhi_pd(u, v)));
    return _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
  }
  using Four = __m128;
  static Four sums_of_4(Vector a, Vector b, Vector c, Vector d) {
    return _mm_add_ps(sums_of_4(a.low, b.low, c.low, d.low),
                      sums_of_4(a.high, b.high, c.high, d.high));
  }
  static Vector sums(const Four* four) {
    return {_mm256_set_m128(four[1], four[0]), _mm256_set_m128(four[3], four[2])};
  }

  static Total no_total() { return _mm256_setzero_pd(); }
  static void add_to(Total& total, Vector x) {
    const __m256d unit = _mm256_set1_pd(0x1.8p20);  // its last place is 2^-32
    const __m128 parts[4] = {_mm256_castps256_ps128(x.low), _mm256_extractf128_ps(x.low, 1),
                             _mm256_castps256_ps128(x.high), _mm256_extractf128_ps(x.high, 1)};
#pragma GCC unroll 4
    for (const __m128 part : parts) {
      const __m256d rounded = _mm256_sub_pd(_mm256_add_pd(_mm256_cvtps_pd(part), unit), unit);
      total = _mm256_add_pd(total, rounded);
    }
  }
  static double sum(Total total) {
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(total), _mm256_extractf128_pd(total, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }

  static Halves no_halves() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static __m256i load_256(const std::uint16_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static Halves load_halves(const std::uint16_t* from) {
    return {load_256(from), load_256(from + 16)};
  }
  static Halves load_16_halves(const std::uint16_t* from) {
    return {load_256(from), _mm256_setzero_si256()};
  }
  static void store_halves(std::uint16_t* to, Halves x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x.low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 16), x.high);
  }
  static Halves max_size(Halves a, Halves b) {
    const __m256i size = _mm256_set1_epi16(0x7fff);
    return {_mm256_max_epu16(a.low, _mm256_and_si256(b.low, size)),
            _mm256_max_epu16(a.high, _mm256_and_si256(b.high, size))};
  }
  static float largest_half(Halves x) {
    const __m256i most = _mm256_max_epu16(x.low, x.high);
    return largest({_mm256_cvtph_ps(_mm256_castsi256_si128(most)),
                    _mm256_cvtph_ps(_mm256_extracti128_si256(most, 1))});
  }
};

}  // namespace flotilla::kernels
