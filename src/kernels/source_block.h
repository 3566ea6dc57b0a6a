#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/packed_weights.h"

namespace flotilla::kernels {

// A block of 32 weights as GGUF stores it, taken apart. Weight i is
//   Q4_0, Q8_0   scale * (value - offset)         Q4_1, Q4_K   scale * value + minimum
//   Q6_K         scale of its half * (value - offset)
struct SourceBlock {
  std::uint8_t values[kBlock];
  std::uint16_t outer_scale;    // f16
  std::uint16_t outer_minimum;  // f16, Q4_1 and Q4_K
  int scale[2];                 // Q4_K: one. Q6_K: one a half. Else 1
  int minimum;                  // Q4_K
};

// Block `index` of a row.
SourceBlock read_block(WeightType type, const std::byte* row, int index);

}  // namespace flotilla::kernels
