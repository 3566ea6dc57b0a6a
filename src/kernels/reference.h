#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/activations.h"
#include "kernels/attention.h"
#include "kernels/packed_weights.h"

// The kernels' arithmetic in plain scalar code, from GGUF's own bytes: what tests compare with.
namespace flotilla::kernels::reference {

float f16_to_float(std::uint16_t bits);
std::uint16_t float_to_f16(float value);  // rounds to nearest even

// One block of 32.
BlockScale quantize(const float* x, std::int8_t* q);

// output[column * rows + row]; column c of the activations begins at x + c * depth.
void multiply(WeightType type, const std::byte* source, int rows, int depth, const float* x,
              int columns, float* output);

// The weight as a number, for the error of the whole.
double weight(WeightType type, const std::byte* row, int index);

// All of the call, in f64.
void attend(const AttentionCall& call);

}  // namespace flotilla::kernels::reference
