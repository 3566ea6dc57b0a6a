#pragma once

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "kernels/instruction_set.h"
#include "kernels/packed_weights.h"
#include "kernels/reference.h"

// Random inputs of this folder's tests.
namespace flotilla::kernels {

inline constexpr double kRandomFloatMax = 4;

inline std::vector<InstructionSet> present_sets() {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set : kInstructionSets) {
    if (has_instruction_set(set)) sets.push_back(set);
  }
  return sets;
}

// 64-byte aligned, freed at its end.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(std::size_t bytes) { resize(bytes); }
  ~AlignedBytes() { std::free(data_); }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;

  void resize(std::size_t bytes) {
    std::free(data_);
    data_ = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
};

inline float random_float(Random& random, double largest) {
  return static_cast<float>((random.uniform() * 2 - 1) * largest);
}

inline std::vector<float> random_floats(int count, Random& random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = random_float(random, kRandomFloatMax);
  return values;
}

inline std::vector<std::uint16_t> random_halves(int count, Random& random) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
  for (auto& value : values) value = reference::float_to_f16(random_float(random, 2));
  return values;
}

// Sane f16 scales where GGUF has them.
inline void put_scales(WeightType type, std::vector<std::byte>& bytes, Random& random) {
  const auto put = [&](std::size_t at) {
    const std::uint16_t half = reference::float_to_f16(random_float(random, 0.1));
    std::memcpy(bytes.data() + at, &half, sizeof(half));
  };
  const std::size_t unit = source_row_bytes(type, depth_unit(type));
  for (std::size_t at = 0; at < bytes.size(); at += unit) {
    if (type == WeightType::Q6_K) {
      put(at + 208);
      continue;
    }
    put(at);
    if (type == WeightType::Q4_1 || type == WeightType::Q4_K) put(at + 2);
  }
}

// All bytes are `byte`, but scales.
inline std::vector<std::byte> equal_weights(WeightType type, int rows, int depth, int byte,
                                            Random& random) {
  std::vector<std::byte> bytes(source_row_bytes(type, depth) * static_cast<std::size_t>(rows),
                               static_cast<std::byte>(byte));
  put_scales(type, bytes, random);
  return bytes;
}

inline std::vector<std::byte> random_weights(WeightType type, int rows, int depth, Random& random) {
  std::vector<std::byte> bytes(source_row_bytes(type, depth) * static_cast<std::size_t>(rows));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  put_scales(type, bytes, random);
  return bytes;
}

// A number of all their bits: what is the same on each kind of processor is written down as such.
inline std::uint64_t bits_of(const std::vector<float>& values) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const float value : values) {
    hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace flotilla::kernels
