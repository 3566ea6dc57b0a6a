#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/packed_weights.h"

namespace flotilla::kernels {

inline constexpr int kTileColumns = 16;  // most columns that one pass over the weights serves

// What belongs to a column's block of 32 quantised activations: x ~ scale * q, q in [-127, 127].
struct BlockScale {
  float scale;
  float scaled_sum;         // scale * sum of q: what a weight's minimum is multiplied by
  std::int32_t start;       // -8 * sum of q: takes back the zero points 8 and 128
  std::int32_t start_high;  // of the second half, for Q6_K, whose halves have scales of their own
};

// Columns are cut into tiles of nearly equal width, at most 16: 17 columns are 9 + 8, since a tile
// of one costs as much unpacking as one of 16.
struct Tile {
  int first = 0;
  int width = 0;
};

constexpr int tiles_of(int columns) { return (columns + kTileColumns - 1) / kTileColumns; }

constexpr Tile tile_at(int columns, int index) {
  const int tiles = tiles_of(columns);
  const int first = columns * index / tiles;
  return {.first = first, .width = columns * (index + 1) / tiles - first};
}

// Quantised columns. A tile's blocks are interleaved: block b of column c of a tile of width w,
// which begins at column f, is at quants + f * depth + (b * w + c) * 32.
// NEON's matrix products have the columns of a tile in pairs (matmul_neoni8mm.cpp).
struct Activations {
  std::int8_t* quants = nullptr;  // 64-byte aligned
  BlockScale* scales = nullptr;
  int columns = 0;
  int depth = 0;

  static constexpr std::size_t bytes(int columns, int depth) {
    const auto values = static_cast<std::size_t>(columns) * static_cast<std::size_t>(depth);
    return (values + 63) / 64 * 64 + values / kBlock * sizeof(BlockScale);
  }
  // In `memory` of bytes(columns, depth), 64-byte aligned.
  static Activations in(std::byte* memory, int columns, int depth) {
    const auto values = static_cast<std::size_t>(columns) * static_cast<std::size_t>(depth);
    return {.quants = reinterpret_cast<std::int8_t*>(memory),
            .scales = reinterpret_cast<BlockScale*>(memory + (values + 63) / 64 * 64),
            .columns = columns,
            .depth = depth};
  }

  std::int8_t* tile_quants(Tile tile) const {
    return quants + static_cast<std::ptrdiff_t>(tile.first) * depth;
  }
  BlockScale* tile_scales(Tile tile) const {
    return scales + static_cast<std::ptrdiff_t>(tile.first) * (depth / kBlock);
  }
};

}  // namespace flotilla::kernels
