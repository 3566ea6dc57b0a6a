#pragma once

#include <cstddef>

namespace flotilla::platform {

// Asks for pages of 2 MiB for memory that is walked over again and again: each of the usual 4 KiB
// costs a look at the page table, two of them in a virtual machine. Before it is first touched; a
// wish that the system need not grant.
void prefer_huge_pages(void* memory, std::size_t bytes);

// Makes private memory zero. Its whole pages are given back to the system, which brings them zeroed
// when they are touched: gigabytes of cells cost neither time nor memory before they hold anything.
// They stay out of core dumps.
void zero_pages(void* memory, std::size_t bytes);

}  // namespace flotilla::platform
