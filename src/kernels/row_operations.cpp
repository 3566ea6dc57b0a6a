#include "kernels/row_operations.h"

namespace flotilla::kernels {

const RowKernels* row_kernels(InstructionSet set) {
#if defined(__x86_64__)
  switch (set) {
    case InstructionSet::Amx:
    case InstructionSet::Avx512Vnni: return &kRowsAvx512;
    case InstructionSet::AvxVnni:
    case InstructionSet::Avx2: return &kRowsAvx2;
    case InstructionSet::None: return nullptr;
  }
#else
  (void)set;
#endif
  return nullptr;
}

}  // namespace flotilla::kernels
