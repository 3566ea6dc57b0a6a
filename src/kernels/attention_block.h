#pragma once

#include <cstdint>

#include "kernels/attention.h"

// What attention.cpp hands to the kernel of an instruction set.
namespace flotilla::kernels {

inline constexpr int kTileCells = 16;

// Rows of one stream that see much the same cells, and the union of what they see.
struct AttentionBlock {
  const AttentionCall* call = nullptr;
  int stream = 0;
  int first_row = 0;  // within the stream
  int rows = 0;
  int kv_head = 0;   // the first of those that are computed together:
  int kv_heads = 1;  // what they need of a cell is fetched from memory in one go
  int tiles = 0;
  const std::int32_t* cells = nullptr;     // [tiles * 16], the last one repeated at the end
  const std::uint16_t* visible = nullptr;  // [rows][tiles] a bit for each cell of a tile
  float* scores = nullptr;                 // [rows * kv_heads * group][tiles * 16]
  float* tile = nullptr;                   // [16][size], 64-byte aligned
  float* sums = nullptr;                   // [rows * kv_heads * group][size], 64-byte aligned
  std::uint16_t* value_max = nullptr;      // [rows * kv_heads][32]
};

struct AttentionKernels {
  // Bit i of `bits` [(cells + 63) / 64]: mask[i] is not -inf.
  void (*visible_bits)(const std::uint16_t* mask, int cells, std::uint64_t* bits);
  void (*attend_block)(const AttentionBlock& block);
};

extern const AttentionKernels kAttentionAvx512Vnni;
extern const AttentionKernels kAttentionAvx2;
extern const AttentionKernels kAttentionNeon;

}  // namespace flotilla::kernels
