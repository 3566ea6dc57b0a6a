#include "kernels/matmul.h"

#include "kernels/matmul_sets.h"

namespace flotilla::kernels {

const MatmulKernels* matmul_kernels(InstructionSet set) {
#if defined(__x86_64__)
  switch (set) {
    case InstructionSet::Amx: return &kMatmulAmx;
    case InstructionSet::Avx512Vnni: return &kMatmulAvx512Vnni;
    case InstructionSet::AvxVnni: return &kMatmulAvxVnni;
    case InstructionSet::Avx2: return &kMatmulAvx2;
    default: return nullptr;
  }
#elif defined(__aarch64__)
  switch (set) {
    case InstructionSet::NeonI8mm: return &kMatmulNeonI8mm;
    case InstructionSet::NeonDot: return &kMatmulNeonDot;
    default: return nullptr;
  }
#else
  (void)set;
  return nullptr;
#endif
}

void quantize_columns(const MatmulKernels& kernels, const Activations& activations,
                      const float* source, std::ptrdiff_t stride, int first, int last) {
  const int blocks = activations.depth / kBlock;
  for (int index = 0; index < tiles_of(activations.columns); ++index) {
    const Tile tile = tile_at(activations.columns, index);
    for (int column = tile.first; column < tile.first + tile.width; ++column) {
      if (column < first || column >= last) continue;
      const int place = column - tile.first;
      kernels.quantize(source + stride * (column - first), blocks,
                       activations.tile_quants(tile) + std::ptrdiff_t{place} * kBlock,
                       activations.tile_scales(tile) + place,
                       {.column = place, .width = tile.width});
    }
  }
}

}  // namespace flotilla::kernels
