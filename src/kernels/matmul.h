#pragma once

#include "kernels/activations.h"
#include "kernels/instruction_set.h"
#include "kernels/packed_weights.h"

namespace flotilla::kernels {

// Result [columns][rows] of weights [rows][depth] and activations [columns][depth].
struct MatmulOutput {
  float* data = nullptr;
  std::ptrdiff_t column_stride = 0;  // floats
};

// A column's place in its tile.
struct TilePlace {
  int column = 0;
  int width = 1;
};

// Mat-mul of one instruction set. All compute the same bits, whatever the number of columns,
// threads and tiles: a result is the sum over its blocks in order, of
//   fma(float(integer dot), weight scale * scale, sum), then fma(weight minimum, scaled_sum, sum).
struct MatmulKernels {
  // Quantises `blocks` blocks of one column into its tile, of which `quants` and `scales` are the
  // column's own part of the first block.
  void (*quantize)(const float* column, int blocks, std::int8_t* quants, BlockScale* scales,
                   TilePlace place);
  // The rows of groups [first_group, last_group).
  void (*multiply)(const PackedMatrix& weights, const Activations& activations, int first_group,
                   int last_group, const MatmulOutput& output);
};

// Null where the set has none.
const MatmulKernels* matmul_kernels(InstructionSet set);

// Quantises columns [first, last) of `activations`; column `first` is at source, each further one
// `stride` floats on.
void quantize_columns(const MatmulKernels& kernels, const Activations& activations,
                      const float* source, std::ptrdiff_t stride, int first, int last);

}  // namespace flotilla::kernels
