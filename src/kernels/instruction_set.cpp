#include "kernels/instruction_set.h"

#include <cstdlib>

namespace flotilla::kernels {
namespace {

constexpr InstructionSet kBestFirst[] = {InstructionSet::Avx512Vnni, InstructionSet::AvxVnni,
                                         InstructionSet::Avx2};

#if defined(__x86_64__)
// cpuid leaf 7, sub-leaf 1, eax bit 4: g++ 12 has no name for it in __builtin_cpu_supports.
bool has_avx_vnni() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
  if (a < 1) return false;
  __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(1));
  return (a >> 4 & 1) != 0;
}
#endif

}  // namespace

bool has_instruction_set(InstructionSet set) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi");
  switch (set) {
    case InstructionSet::None: return true;
    case InstructionSet::Avx2: return avx2;
    case InstructionSet::AvxVnni: return avx2 && has_avx_vnni();
    case InstructionSet::Avx512Vnni:
      return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512vnni");
  }
  return false;
#else
  return set == InstructionSet::None;
#endif
}

InstructionSet best_instruction_set() {
  const char* asked = std::getenv("FLOTILLA_KERNELS");
  bool reached = asked == nullptr;
  for (const InstructionSet set : kBestFirst) {
    reached = reached || name_of(set) == asked;
    if (reached && has_instruction_set(set)) return set;
  }
  return InstructionSet::None;
}

std::string_view name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::None: return "none";
    case InstructionSet::Avx2: return "avx2";
    case InstructionSet::AvxVnni: return "avxvnni";
    case InstructionSet::Avx512Vnni: return "avx512vnni";
  }
  return "none";
}

}  // namespace flotilla::kernels
