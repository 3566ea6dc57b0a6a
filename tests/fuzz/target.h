#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

// Readers of what comes from outside, each as a function of any bytes. A target returns, or the
// process ends: by a sanitizer, or by a CHECK of what must hold of every input.
namespace flotilla::fuzz {

struct Target {
  std::string_view name;  // its corpus is tests/fuzz/corpus/NAME
  void (*run)(std::string_view bytes);
};

// Of one file each; all_targets() has them together.
std::vector<Target> request_targets();
std::vector<Target> answer_targets();
std::vector<Target> wire_targets();
std::vector<Target> file_targets();
std::vector<Target> all_targets();

// Where a stream is cut, from a seed: pieces of 1 to 64 bytes, small ones more often.
class Cuts {
 public:
  explicit Cuts(std::uint64_t seed) : state_(seed * 2 + 1) {}

  std::string_view take(std::string_view& rest) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::size_t most = std::size_t{1} << ((state_ >> 33) % 7);
    const std::size_t size = 1 + (state_ >> 40) % most;
    const std::string_view piece = rest.substr(0, size);
    rest.remove_prefix(piece.size());
    return piece;
  }

 private:
  std::uint64_t state_;
};

// The first byte of an input chooses: a seed, or one of several readers.
inline std::uint8_t take_byte(std::string_view& bytes) {
  if (bytes.empty()) return 0;
  const auto first = static_cast<std::uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  return first;
}

// The next line, without its end; the rest stays.
inline std::string_view take_line(std::string_view& bytes) {
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  bytes.remove_prefix(line.size() < bytes.size() ? line.size() + 1 : line.size());
  return line;
}

}  // namespace flotilla::fuzz
