#pragma once

#include "kernels/instruction_set.h"

namespace flotilla::kernels {

// to[i] = f(a[i], b[i]); `to` may be a or b.
using RowOperation = void (*)(const float* a, const float* b, float* to, int count);

struct RowKernels {
  RowOperation add;
  RowOperation silu_times;  // a / (1 + e^-a) * b
};

// Null where the set has none. All sets compute the same bits, element by element.
const RowKernels* row_kernels(InstructionSet set);

extern const RowKernels kRowsAvx512;
extern const RowKernels kRowsAvx2;

}  // namespace flotilla::kernels
