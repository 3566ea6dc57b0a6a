#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The kernel's small text files under /proc and /sys.
namespace flotilla::platform {

// Empty if it cannot be read. At most 1 MiB.
std::string read_small_file(const std::filesystem::path& file);

// A file that is one number; nullopt for "max", nothing or anything else.
std::optional<std::int64_t> read_number(const std::filesystem::path& file);

// The number after `name` at the start of a line: "MemTotal:  16 kB" → 16, "oom_kill 2" → 2.
std::optional<std::int64_t> find_number(std::string_view text, std::string_view name);

// Directories of our control group for a v1 controller, or v2 (empty name), innermost first, up to
// the root of the hierarchy. Empty where there is none.
std::vector<std::filesystem::path> group_dirs(const std::filesystem::path& root,
                                              std::string_view controller);

}  // namespace flotilla::platform
