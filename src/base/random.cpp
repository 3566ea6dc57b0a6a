#include "base/random.h"

#include <array>
#include <random>

namespace flotilla {
namespace {

// To open the system's source costs more than a number of it.
std::random_device& device_of_thread() {
  thread_local std::random_device device;
  return device;
}

}  // namespace

std::uint64_t random_seed() {
  std::random_device& device = device_of_thread();
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

std::string random_hex(int bytes) {
  constexpr std::array digits = {'0', '1', '2', '3', '4', '5', '6', '7',
                                 '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
  std::random_device& device = device_of_thread();
  std::string out;
  out.reserve(static_cast<std::size_t>(bytes) * 2);
  while (out.size() < static_cast<std::size_t>(bytes) * 2) {
    for (unsigned word = device(), i = 0; i < 8 && out.size() < static_cast<std::size_t>(bytes) * 2;
         ++i) {
      out.push_back(digits[word & 15U]);
      word >>= 4U;
    }
  }
  return out;
}

}  // namespace flotilla
