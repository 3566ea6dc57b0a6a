#pragma once

#include <cstddef>
#include <cstdint>

namespace flotilla::kernels {

// The GGUF weight types that have a kernel.
enum class WeightType { Q4_0, Q4_1, Q8_0, Q4_K, Q6_K };

inline constexpr int kGroupRows = 16;  // rows interleaved: one 32-bit lane of 512 bits each
inline constexpr int kBlock = 32;      // weights of a row that share a step of the kernels
inline constexpr int kSuperBlock = 8;  // blocks that share the outer scales of Q4_K and Q6_K

// Bytes of the packed form. A group of 16 rows is a run of blocks, each
//   scales  [16 rows] f16, then for Q4_1 minima [16] f16
//           Q4_K: scales [16] u8, minima [16] u8. Q6_K: scales of both halves [2][16] i8
//   quants  [4][16 rows][4] bytes, low nibbles = weights 0-15 of the block, high = 16-31
//           Q8_0: [8][16][4], each plus 128. Q6_K: then the upper two bits, [2][16][4]
// and before every 8th block Q4_K has d [16], dmin [16] and Q6_K d [16], f16.
// So one load of 64 bytes holds four successive weights of each of the 16 rows, as vpdpbusd wants.
struct PackedLayout {
  int scale_bytes;
  int quant_bytes;
  int super_bytes;

  constexpr int block_bytes() const { return scale_bytes + quant_bytes; }
  // Of one group of rows with `blocks` blocks.
  constexpr std::size_t group_bytes(int blocks) const {
    const auto count = static_cast<std::size_t>(blocks);
    return count * static_cast<std::size_t>(block_bytes()) +
           count / kSuperBlock * static_cast<std::size_t>(super_bytes);
  }
};

constexpr PackedLayout layout_of(WeightType type) {
  switch (type) {
    case WeightType::Q4_0: return {32, 256, 0};
    case WeightType::Q4_1: return {64, 256, 0};
    case WeightType::Q8_0: return {32, 512, 0};
    case WeightType::Q4_K: return {32, 256, 64};
    case WeightType::Q6_K: return {32, 384, 32};
  }
  return {};
}

// Weights of a row come in multiples of this.
constexpr int depth_unit(WeightType type) {
  return type == WeightType::Q4_K || type == WeightType::Q6_K ? kBlock * kSuperBlock : kBlock;
}

// Bytes of `depth` weights as GGUF stores them.
std::size_t source_row_bytes(WeightType type, int depth);

constexpr int groups_of(int rows) { return (rows + kGroupRows - 1) / kGroupRows; }

// A packed matrix [rows][depth]. Rows beyond the last are zero.
struct PackedMatrix {
  WeightType type = WeightType::Q4_0;
  int rows = 0;
  int depth = 0;
  const std::byte* data = nullptr;  // 64-byte aligned

  std::size_t group_bytes() const { return layout_of(type).group_bytes(depth / kBlock); }
  std::size_t bytes() const { return static_cast<std::size_t>(groups_of(rows)) * group_bytes(); }
};

// Fills the groups [first_group, last_group) of `target`, whose memory is `data`, from GGUF's rows.
// Groups are independent: several threads may pack one matrix.
void pack_groups(const PackedMatrix& target, std::byte* data, const std::byte* source,
                 int first_group, int last_group);

// All groups, on `threads` threads.
void pack_matrix(const PackedMatrix& target, std::byte* data, const std::byte* source, int threads);

}  // namespace flotilla::kernels
