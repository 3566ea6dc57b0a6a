#include "kernels/row_operations.h"

namespace flotilla::kernels {

const RowKernels* row_kernels(InstructionSet set) {
#if defined(__x86_64__)
  switch (set) {
    case InstructionSet::Amx:
    case InstructionSet::Avx512Vnni: return &kRowsAvx512;
    case InstructionSet::AvxVnni:
    case InstructionSet::Avx2: return &kRowsAvx2;
    default: return nullptr;
  }
#elif defined(__aarch64__)
  return set == InstructionSet::None ? nullptr : &kRowsNeon;
#else
  (void)set;
  return nullptr;
#endif
}

}  // namespace flotilla::kernels
