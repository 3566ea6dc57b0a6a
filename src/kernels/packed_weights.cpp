#include "kernels/packed_weights.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "kernels/source_block.h"

namespace flotilla::kernels {
namespace {

// GGUF's sizes: bytes of a block of 32, or of a super-block of 256.
constexpr int kQ40Bytes = 18;
constexpr int kQ41Bytes = 20;
constexpr int kQ80Bytes = 34;
constexpr int kQ4KBytes = 144;
constexpr int kQ6KBytes = 210;

int source_unit_bytes(WeightType type) {
  switch (type) {
    case WeightType::Q4_0: return kQ40Bytes;
    case WeightType::Q4_1: return kQ41Bytes;
    case WeightType::Q8_0: return kQ80Bytes;
    case WeightType::Q4_K: return kQ4KBytes;
    case WeightType::Q6_K: return kQ6KBytes;
  }
  return 0;
}

std::uint16_t read_f16(const std::uint8_t* at) {
  return static_cast<std::uint16_t>(at[0] | at[1] << 8);
}

void read_nibbles(const std::uint8_t* from, SourceBlock& block) {
  for (int i = 0; i < 16; ++i) {
    block.values[i] = from[i] & 15;
    block.values[i + 16] = from[i] >> 4;
  }
}

// d, dmin, 12 bytes of 6-bit scales and minima, 128 bytes of nibbles: block b has the low or high
// nibbles of bytes [32 * (b / 2), + 32).
void read_q4k(const std::uint8_t* super, int b, SourceBlock& block) {
  block.outer_scale = read_f16(super);
  block.outer_minimum = read_f16(super + 2);
  const std::uint8_t* packed = super + 4;
  if (b < 4) {
    block.scale[0] = packed[b] & 63;
    block.minimum = packed[b + 4] & 63;
  } else {
    block.scale[0] = (packed[b + 4] & 15) | (packed[b - 4] >> 6) << 4;
    block.minimum = packed[b + 4] >> 4 | (packed[b] >> 6) << 4;
  }
  const std::uint8_t* nibbles = super + 16 + b / 2 * 32;
  for (int i = 0; i < kBlock; ++i) {
    block.values[i] = static_cast<std::uint8_t>(nibbles[i] >> (b % 2 * 4) & 15);
  }
}

// 128 bytes of low nibbles, 64 of upper bits, 16 scales, d. Blocks 0-3 lie in the first half of
// each, one quarter of the bits of a byte each; 4-7 in the second.
void read_q6k(const std::uint8_t* super, int b, SourceBlock& block) {
  const std::uint8_t* low = super + b / 4 * 64 + b % 2 * 32;
  const std::uint8_t* high = super + 128 + b / 4 * 32;
  const int low_shift = b % 4 / 2 * 4;
  const int high_shift = b % 4 * 2;
  for (int i = 0; i < kBlock; ++i) {
    block.values[i] =
        static_cast<std::uint8_t>((low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4);
  }
  for (int half = 0; half < 2; ++half) {
    block.scale[half] = static_cast<std::int8_t>(super[192 + 2 * b + half]);
  }
  block.outer_scale = read_f16(super + 208);
}

void put_f16(std::byte* at, std::uint16_t value) { std::memcpy(at, &value, sizeof(value)); }

// Row `lane` of a group's block.
void put_block(WeightType type, const SourceBlock& block, int lane, std::byte* at) {
  const PackedLayout layout = layout_of(type);
  switch (type) {
    case WeightType::Q4_1: put_f16(at + 32 + 2 * lane, block.outer_minimum); [[fallthrough]];
    case WeightType::Q4_0:
    case WeightType::Q8_0: put_f16(at + 2 * lane, block.outer_scale); break;
    case WeightType::Q4_K:
      at[lane] = static_cast<std::byte>(block.scale[0]);
      at[16 + lane] = static_cast<std::byte>(block.minimum);
      break;
    case WeightType::Q6_K:
      at[lane] = static_cast<std::byte>(block.scale[0]);
      at[16 + lane] = static_cast<std::byte>(block.scale[1]);
      break;
  }
  std::byte* quants = at + layout.scale_bytes;
  const auto slot = [lane](int i) { return i / 4 * 64 + lane * 4 + i % 4; };
  if (type == WeightType::Q8_0) {
    for (int i = 0; i < kBlock; ++i) quants[slot(i)] = static_cast<std::byte>(block.values[i]);
    return;
  }
  for (int i = 0; i < 16; ++i) {
    quants[slot(i)] = static_cast<std::byte>((block.values[i] & 15) | block.values[i + 16] << 4);
  }
  if (type != WeightType::Q6_K) return;
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 4; ++i) {
      int bits = 0;
      for (int j = 0; j < 4; ++j) bits |= block.values[16 * half + 4 * j + i] >> 4 << 2 * j;
      quants[256 + 64 * half + 4 * lane + i] = static_cast<std::byte>(bits);
    }
  }
}

}  // namespace

std::size_t source_row_bytes(WeightType type, int depth) {
  return static_cast<std::size_t>(depth / depth_unit(type)) *
         static_cast<std::size_t>(source_unit_bytes(type));
}

SourceBlock read_block(WeightType type, const std::byte* row, int index) {
  SourceBlock block{};
  block.scale[0] = block.scale[1] = 1;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(row);
  const bool super = depth_unit(type) != kBlock;
  bytes += std::ptrdiff_t{super ? index / kSuperBlock : index} * source_unit_bytes(type);
  switch (type) {
    case WeightType::Q4_0:
      block.outer_scale = read_f16(bytes);
      read_nibbles(bytes + 2, block);
      break;
    case WeightType::Q4_1:
      block.outer_scale = read_f16(bytes);
      block.outer_minimum = read_f16(bytes + 2);
      read_nibbles(bytes + 4, block);
      break;
    case WeightType::Q8_0:
      block.outer_scale = read_f16(bytes);
      for (int i = 0; i < kBlock; ++i) block.values[i] = bytes[2 + i] ^ 0x80;
      break;
    case WeightType::Q4_K: read_q4k(bytes, index % kSuperBlock, block); break;
    case WeightType::Q6_K: read_q6k(bytes, index % kSuperBlock, block); break;
  }
  return block;
}

void pack_groups(const PackedMatrix& target, std::byte* data, const std::byte* source,
                 int first_group, int last_group) {
  const PackedLayout layout = layout_of(target.type);
  const std::size_t row_bytes = source_row_bytes(target.type, target.depth);
  const int blocks = target.depth / kBlock;
  for (int group = first_group; group < last_group; ++group) {
    std::byte* at = data + static_cast<std::size_t>(group) * target.group_bytes();
    std::memset(at, 0, target.group_bytes());
    for (int b = 0; b < blocks; ++b) {
      std::byte* super = nullptr;
      if (layout.super_bytes != 0 && b % kSuperBlock == 0) {
        super = at;
        at += layout.super_bytes;
      }
      for (int lane = 0; lane < kGroupRows; ++lane) {
        const int row = group * kGroupRows + lane;
        if (row >= target.rows) break;
        const SourceBlock block =
            read_block(target.type, source + static_cast<std::size_t>(row) * row_bytes, b);
        if (super != nullptr) {
          put_f16(super + 2 * lane, block.outer_scale);
          if (target.type == WeightType::Q4_K) {
            put_f16(super + 32 + 2 * lane, block.outer_minimum);
          }
        }
        put_block(target.type, block, lane, at);
      }
      at += layout.block_bytes();
    }
  }
}

void pack_matrix(const PackedMatrix& target, std::byte* data, const std::byte* source,
                 int threads) {
  const int groups = groups_of(target.rows);
  // A thread for each 256 KiB at most: starting one is not worth less.
  const int useful = static_cast<int>(target.bytes() >> 18) + 1;
  const int parts = std::clamp(threads, 1, std::min(useful, groups));
  std::vector<std::thread> others;  // libc++ has no jthread
  for (int part = 1; part < parts; ++part) {
    others.emplace_back(
        [&target, data, source, first = groups * part / parts, last = groups * (part + 1) / parts] {
          pack_groups(target, data, source, first, last);
        });
  }
  pack_groups(target, data, source, 0, groups / parts);
  for (std::thread& other : others) other.join();
}

}  // namespace flotilla::kernels
