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

  static constexpr RowKernels kKernels = {.add = each<Ops::add>, .silu_times = each<silu_times>};
};

}  // namespace flotilla::kernels
