#pragma once

#include <cstdint>

namespace flotilla::platform {

// Files that this process may have open at once, sockets among them.
std::uint64_t open_files_max();

}  // namespace flotilla::platform
