#pragma once

#include <cstddef>
#include <filesystem>

#include "base/result.h"

namespace flotilla::platform {

// sockaddr_un holds 104 bytes on macOS, 108 on Linux; a few stay spare.
inline constexpr std::size_t kSocketPathMax = 100;
// What a socket's file name may have in a directory of make_socket_dir.
inline constexpr std::size_t kSocketNameMax = 28;

// A directory of mode 0700 that is ours, for sockets whose whole paths fit: `owner`/s if that is
// short enough and ssh can forward it by name (a home may be called jo@corp), else one named after
// a hash of `owner` in $XDG_RUNTIME_DIR or /tmp. One of that name that belongs to somebody else, is
// a link or is open to others is refused.
Result<std::filesystem::path> make_socket_dir(const std::filesystem::path& owner);

// Creates `directory` (and its parents) with mode 0700, or checks that it is ours and closed to
// others.
Result<void> make_private_dir(const std::filesystem::path& directory);

}  // namespace flotilla::platform
