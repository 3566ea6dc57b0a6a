#pragma once

#include "kernels/matmul.h"

// One table a source file that is compiled for its instruction set.
namespace flotilla::kernels {

extern const MatmulKernels kMatmulAmx;
extern const MatmulKernels kMatmulAvx512Vnni;
extern const MatmulKernels kMatmulAvx2;
extern const MatmulKernels kMatmulAvxVnni;
extern const MatmulKernels kMatmulNeonDot;
extern const MatmulKernels kMatmulNeonI8mm;

}  // namespace flotilla::kernels
