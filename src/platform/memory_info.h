#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace flotilla::platform {

// What this process may use: the machine's memory, or its control group's where that is less.
struct MemoryInfo {
  std::int64_t total_bytes = 0;
  std::int64_t available_bytes = 0;  // without swapping; page cache counts as available
  bool limited_by_group = false;
};

// `root` is "/" but for tests, which lay out proc and sys/fs/cgroup below another.
MemoryInfo memory_info(const std::filesystem::path& root = "/");

// Resident bytes of a process; nullopt if there is none.
std::optional<std::int64_t> resident_bytes(int pid);
// Of a process group's processes together.
std::int64_t group_resident_bytes(int group);

// What a process zeroed by zero_pages and has not touched since, so what it may still take of what
// counts as available: a model's cells. 0 where the system does not say.
std::int64_t untouched_bytes(int pid);

// How often the kernel has killed for memory in our control group (else on this machine). A step up
// between two looks says why a process died of SIGKILL. nullopt where it is not counted.
std::optional<std::int64_t> memory_kills(const std::filesystem::path& root = "/");

}  // namespace flotilla::platform
