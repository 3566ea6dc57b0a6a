#include "kernels/instruction_set.h"

#include <cstdlib>
#include <ranges>

#include "platform/amx_tiles.h"
#include "platform/cpu_info.h"

namespace flotilla::kernels {
namespace {

#if defined(__x86_64__)
struct CpuId {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
};

CpuId extended_features(unsigned sub_leaf) {
  CpuId id;
  __asm__("cpuid" : "=a"(id.a), "=b"(id.b), "=c"(id.c), "=d"(id.d) : "a"(7), "c"(sub_leaf));
  return id;
}

// Leaf 7, sub-leaf 1, eax bit 4: g++ 12 has no name for it in __builtin_cpu_supports.
bool has_avx_vnni() {
  return extended_features(0).a >= 1 && (extended_features(1).a >> 4 & 1) != 0;
}

// Leaf 7, edx bits 24 and 25: tiles, and their products of bytes.
bool has_amx_int8() { return (extended_features(0).d >> 24 & 3) == 3; }
#endif

}  // namespace

bool has_instruction_set(InstructionSet set) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi");
  const bool avx512_vnni =
      avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512vnni");
  switch (set) {
    case InstructionSet::None: return true;
    case InstructionSet::Avx2: return avx2;
    case InstructionSet::AvxVnni: return avx2 && has_avx_vnni();
    case InstructionSet::Avx512Vnni: return avx512_vnni;
    case InstructionSet::Amx: return avx512_vnni && has_amx_int8() && platform::allow_amx_tiles();
    default: return false;
  }
#elif defined(__aarch64__)
  const platform::ArmFeatures features = platform::arm_features();
  switch (set) {
    case InstructionSet::None: return true;
    case InstructionSet::NeonDot: return features.dot_products;
    case InstructionSet::NeonI8mm: return features.dot_products && features.matrix_products;
    default: return false;
  }
#else
  return set == InstructionSet::None;
#endif
}

InstructionSet best_instruction_set() {
  const char* asked = std::getenv("FLOTILLA_KERNELS");
  bool reached = asked == nullptr;
  for (const InstructionSet set : std::views::reverse(kInstructionSets)) {
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
    case InstructionSet::Amx: return "amx";
    case InstructionSet::NeonDot: return "neondot";
    case InstructionSet::NeonI8mm: return "neoni8mm";
  }
  return "none";
}

}  // namespace flotilla::kernels
