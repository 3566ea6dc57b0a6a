#pragma once

#include <string_view>

namespace flotilla::kernels {

// The sets of vector instructions that kernels are written for, best last: x86-64's, then Arm's.
// Amx: products by tiles, all else by Avx512Vnni. NeonDot: sdot. NeonI8mm: usmmla.
enum class InstructionSet { None, Avx2, AvxVnni, Avx512Vnni, Amx, NeonDot, NeonI8mm };

inline constexpr InstructionSet kInstructionSets[] = {
    InstructionSet::Avx2, InstructionSet::AvxVnni, InstructionSet::Avx512Vnni,
    InstructionSet::Amx,  InstructionSet::NeonDot, InstructionSet::NeonI8mm};

// The best one of this processor. FLOTILLA_KERNELS=none|avx2|avxvnni|avx512vnni|amx or
// none|neondot|neoni8mm asks for a lower one (tests, comparisons); what the processor lacks is
// never chosen.
InstructionSet best_instruction_set();

// Whether this processor runs it, and the system lets us.
bool has_instruction_set(InstructionSet set);

std::string_view name_of(InstructionSet set);

}  // namespace flotilla::kernels
