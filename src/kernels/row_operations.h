#pragma once

#include "kernels/instruction_set.h"

namespace flotilla::kernels {

// to[i] = f(a[i], b[i]); `to` may be a or b.
using RowOperation = void (*)(const float* a, const float* b, float* to, int count);

struct RowKernels {
  RowOperation add;
  RowOperation silu_times;  // a / (1 + e^-a) * b
  // to[i] = from[i] / sqrt(mean of squares + epsilon) * weight[i]; `to` may be `from`.
  void (*rms_norm)(const float* from, const float* weight, float epsilon, float* to, int count);
};

// Null where the set has none. All sets compute the same bits.
const RowKernels* row_kernels(InstructionSet set);

extern const RowKernels kRowsAvx512;
extern const RowKernels kRowsAvx2;
extern const RowKernels kRowsNeon;

}  // namespace flotilla::kernels
