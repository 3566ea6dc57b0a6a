#pragma once

#include <cstddef>

namespace flotilla::platform {

// Asks for pages of 2 MiB for memory that is walked over again and again: each of the usual 4 KiB
// costs a look at the page table, two of them in a virtual machine. Before it is first touched; a
// wish that the system need not grant.
void prefer_huge_pages(void* memory, std::size_t bytes);

}  // namespace flotilla::platform
