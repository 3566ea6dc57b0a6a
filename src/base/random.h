#pragma once

#include <cstdint>
#include <string>

namespace flotilla {

// Chance, by SplitMix64: small, fast, the same on every platform. Seeded by the caller; a seed in a
// test's output replays it.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  // [0, n); n > 0. The bias of the multiply-shift is below 2^-32 for n < 2^32.
  std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
  }
  // [0, 1)
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  bool chance(double probability) { return uniform() < probability; }

 private:
  std::uint64_t state_;
};

// Entropy of the operating system.
std::uint64_t random_seed();
// `bytes` random bytes as hex; for ids and secrets.
std::string random_hex(int bytes);

}  // namespace flotilla
