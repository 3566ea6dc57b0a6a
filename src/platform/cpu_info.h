#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace flotilla::platform {

// Cores that this process may use at once: its affinity, or its control group's quota where that is
// less, rounded up; ≥ 1.
int usable_cores(const std::filesystem::path& root = "/");

// linux-x86_64, linux-aarch64, macos-arm64
std::string platform_name();

// The micro-architecture level of an x86-64 processor, 1 to 4 (3: AVX2; 4: AVX-512); 0 elsewhere.
int x86_level();

// What an Arm processor has beyond its first 64-bit form, and the system lets us use; nothing
// elsewhere.
struct ArmFeatures {
  bool dot_products = false;     // of bytes: sdot
  bool matrix_products = false;  // of bytes: usmmla, usdot
};
ArmFeatures arm_features();

// Seconds that all the machine's cores have been busy since it started; the difference of two looks
// over the time between is the load in cores. nullopt where it is not known.
std::optional<double> busy_core_seconds(const std::filesystem::path& root = "/");

}  // namespace flotilla::platform
