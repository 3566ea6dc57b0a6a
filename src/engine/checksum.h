#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace flotilla::engine {

// XXH64: finds damage, not malice. ~10 GB/s, so that it costs less than the copy of what it covers.
std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed = 0);

}  // namespace flotilla::engine
