#pragma once

#include "kernels/exponential.h"
#include "kernels/row_operations.h"

namespace flotilla::kernels {

// `Ops` as in attention_run.h.
template <class Ops>
struct RowRun {
  using Vector = typename Ops::Vector;

  static Vector silu_times(Vector a, Vector b) {
    const Vector size = Ops::max(Ops::min(a, Ops::set(87.0F)), Ops::set(-87.0F));
    const Vector exp = Exponential<Ops>::exp(Ops::sub(Ops::set(0.0F), size));
    return Ops::mul(Ops::div(a, Ops::add(Ops::set(1.0F), exp)), b);
  }

  template <Vector (*F)(Vector, Vector)>
  static void each(const float* a, const float* b, float* to, int count) {
    int i = 0;
    for (; i + 16 <= count; i += 16) Ops::store(to + i, F(Ops::load(a + i), Ops::load(b + i)));
    if (i == count) return;
    float last_a[16] = {};
    float last_b[16] = {};
    float last[16];
    for (int j = 0; i + j < count; ++j) {
      last_a[j] = a[i + j];
      last_b[j] = b[i + j];
    }
    Ops::store(last, F(Ops::load(last_a), Ops::load(last_b)));
    for (int j = 0; i + j < count; ++j) to[i + j] = last[j];
  }

  // The last `count` % 16 floats, and zeros.
  static Vector load_rest(const float* from, int count) {
    float last[16] = {};
    for (int i = 0; i < count; ++i) last[i] = from[i];
    return Ops::load(last);
  }

  // Lane j sums the squares of elements 16 i + j, in order; then the lanes, in order.
  static void rms_norm(const float* from, const float* weight, float epsilon, float* to,
                       int count) {
    const int whole = count / 16 * 16;
    const Vector rest = load_rest(from + whole, count - whole);
    Vector squares = Ops::mul(rest, rest);
    for (int i = 0; i < whole; i += 16) {
      const Vector x = Ops::load(from + i);
      squares = Ops::fma(x, x, squares);
    }
    float lanes[16];
    Ops::store(lanes, squares);
    float sum = 0;
    for (const float lane : lanes) sum += lane;
    const float scale = 1.0F / __builtin_sqrtf(sum / static_cast<float>(count) + epsilon);
    const Vector by = Ops::set(scale);
    for (int i = 0; i < whole; i += 16) {
      Ops::store(to + i, Ops::mul(Ops::mul(Ops::load(from + i), by), Ops::load(weight + i)));
    }
    if (whole == count) return;
    float last[16];
    Ops::store(last, Ops::mul(Ops::mul(rest, by), load_rest(weight + whole, count - whole)));
    for (int i = 0; whole + i < count; ++i) to[whole + i] = last[i];
  }

  static constexpr RowKernels kKernels = {
      .add = each<Ops::add>, .silu_times = each<silu_times>, .rms_norm = rms_norm};
};

}  // namespace flotilla::kernels
