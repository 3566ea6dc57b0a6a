#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "platform/process.h"

// What only a Mac has. The rules are pure; elsewhere there is nothing to tell.
namespace flotilla::platform {

// What Metal may keep in memory at once, of `total` bytes with iogpu.wired_limit_mb so set: 0 is
// the system's own rule, two thirds of the memory up to 36 GiB and three quarters beyond.
std::int64_t metal_bytes(std::int64_t total, std::int64_t wired_limit_mb);
// Of this machine; nullopt where there is no Metal.
std::optional<std::int64_t> metal_bytes();

// Keeps the machine awake for as long as it runs, and no longer than process `pid`; nullopt where
// nobody falls asleep. `platform`: as platform_name().
std::optional<Command> awake_command(const std::string& platform, int pid);

}  // namespace flotilla::platform
