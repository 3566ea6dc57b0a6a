#pragma once

#include <cstdint>

namespace flotilla::platform {

// Files that this process may have open at once, sockets among them.
std::uint64_t open_files_max();

// From here on blocks of so many bytes and more go back to the system as soon as they are freed. By
// itself glibc keeps them up to 32 MiB once it has seen one, and what is small breaks them up.
void return_large_blocks(int bytes);

}  // namespace flotilla::platform
