#include <immintrin.h>

#include "kernels/matmul_512.h"
#include "kernels/matmul_sets.h"

// Products by AMX's tiles: a block's 16 rows are unpacked to bytes in memory, one instruction
// multiplies them with up to 16 columns, and the integers come back through memory. What is left to
// vectors is 4 operations a column and block instead of 12 (matmul_avx512.cpp). The way through
// memory costs 9 ns a block (loads of 16 + 8 rows, product, store; Sapphire Rapids), however few
// the columns are, and does not overlap with vectors' work, so it pays from some columns on.
// Compiled for AVX512-VNNI and AMX: includes nothing whose inline functions other files share,
// since the linker might keep this file's copy of them.
namespace flotilla::kernels {
namespace {

struct Amx;
using Weights = Weights512<Amx>;

// Fewer columns are left to vpdpbusd (bench/kernels, Q4_1: 4 columns take 1.6 times as long by
// tiles, 8 the same, 16 0.7). More are cut into tiles of kWidthMin columns and more.
constexpr int kColumnsMin = 12;
constexpr int kWidthMin = 8;

// Tile registers: results [columns][16 rows] integers, activations [columns][32 bytes], weights
// [8][16 rows][4 bytes]; of Q6_K half the bytes, since halves of a block have scales of their own.
// The processor renames them: more than one set is no faster.
constexpr int kResult = 0;
constexpr int kColumns = 1;
constexpr int kWeights = 2;

struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileShapes) == 64);

constexpr int parts_of(WeightType type) { return type == WeightType::Q6_K ? 2 : 1; }

// A thread keeps its shapes from call to call: setting them takes 50 ns, as long as 5 blocks.
void set_shapes(int columns, int parts) {
  thread_local int current = 0;
  const int wanted = columns * 2 + parts;
  if (current == wanted) return;
  current = wanted;
  TileShapes shapes;
  shapes.row_bytes[kResult] = 64;
  shapes.rows[kResult] = static_cast<std::uint8_t>(columns);
  shapes.row_bytes[kColumns] = static_cast<std::uint16_t>(kBlock / parts);
  shapes.rows[kColumns] = static_cast<std::uint8_t>(columns);
  shapes.row_bytes[kWeights] = 64;
  shapes.rows[kWeights] = static_cast<std::uint8_t>(kBlock / 4 / parts);
  __asm__ volatile("ldtilecfg %0" : : "m"(shapes));
}

// The compilers' own functions for these do not say what memory they read and write (g++ 12), and a
// general clobber keeps the sums out of registers: so each says exactly which bytes.
template <int Tile, std::size_t Bytes>
[[gnu::always_inline]] inline void load_tile(const void* from, long stride) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2"
                   :
                   : "r"(from), "r"(stride), "i"(Tile),
                     "m"(*static_cast<const char (*)[Bytes]>(from)));
}

template <std::size_t Bytes>
[[gnu::always_inline]] inline void store_tile(void* to) {
  __asm__ volatile("tilestored %%tmm%c3, (%1,%2,1)"
                   : "=m"(*static_cast<char (*)[Bytes]>(to))
                   : "r"(to), "r"(64L), "i"(kResult));
}

// Columns (signed) times weights.
template <bool SignedWeights>
[[gnu::always_inline]] inline void multiply_tiles() {
  if constexpr (SignedWeights) {
    __asm__ volatile("tilezero %%tmm%c0\n\ttdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0"
                     :
                     : "i"(kResult), "i"(kColumns), "i"(kWeights));
  } else {
    __asm__ volatile("tilezero %%tmm%c0\n\ttdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0"
                     :
                     : "i"(kResult), "i"(kColumns), "i"(kWeights));
  }
}

// Unpacked blocks of one group, as many as leave the first-level cache room for the columns.
constexpr int kSliceBlocks = 48;
struct Slice {
  __m512i quants[kSliceBlocks][8];
  __m512 scale[kSliceBlocks];
  __m512 second[kSliceBlocks];  // Q4_1, Q4_K: minimum. Q6_K: scale of the second half
};
static_assert(kSliceBlocks % kSuperBlock == 0);

constexpr bool has_second(WeightType type) {
  return type != WeightType::Q4_0 && type != WeightType::Q8_0;
}

// Weights whose zero point is not 0 are stored signed; Q8_0's stay as they are packed, and its sums
// take the zero point back.
constexpr int zero_point(WeightType type) {
  return type == WeightType::Q4_0 ? 8 : type == WeightType::Q6_K ? 32 : 0;
}

// Where the group's blocks are read from, and what for.
struct SliceCall {
  const std::byte* packed;  // the slice's first block, or the outer scales before it
  int blocks;
  const std::int8_t* quants;  // [blocks][columns][32]
  const BlockScale* scales;   // [blocks][columns]
  float* output;
  std::ptrdiff_t stride;
  __mmask16 rows;
  bool continues;  // the output holds the sums of the slices before
};

// Where block `b` of a slice begins.
template <WeightType T>
constexpr std::ptrdiff_t block_at(int b) {
  return std::ptrdiff_t{layout_of(T).block_bytes()} * b +
         std::ptrdiff_t{layout_of(T).super_bytes} * (b / kSuperBlock + 1);
}

template <WeightType T>
[[gnu::always_inline]] inline void unpack_block(const std::byte* packed, int b,
                                                Weights::Super& super, Slice& slice) {
  const std::byte* at = packed + block_at<T>(b);
  if constexpr (layout_of(T).super_bytes != 0) {
    if (b % kSuperBlock == 0) Weights::load_super<T>(at - layout_of(T).super_bytes, super);
  }
  Weights::Block block;
  Weights::load_scales<T>(at, super, block);
  slice.scale[b] = block.scale;
  if constexpr (T == WeightType::Q6_K) slice.second[b] = block.scale_high;
  if constexpr (T == WeightType::Q4_1 || T == WeightType::Q4_K) slice.second[b] = block.minimum;
  if constexpr (T != WeightType::Q8_0) {
    Weights::unpack<T>(at + layout_of(T).scale_bytes, block);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      slice.quants[b][j] = zero_point(T) == 0
                               ? block.v[j]
                               : _mm512_sub_epi8(block.v[j], _mm512_set1_epi8(zero_point(T)));
    }
  }
  // 4 KiB ahead: the hardware's own prefetch stops at page ends.
  for (int line = 0; line < layout_of(T).block_bytes(); line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(at) + 4096 + line, _MM_HINT_T0);
  }
}

// What goes through memory is read some blocks later: a tile cannot take it from stores that are
// still on their way.
constexpr int kUnpackAhead = 4;
constexpr int kAddBehind = 2;

// Products of N columns and 16 rows, of as many blocks as are waited for.
template <WeightType T, int N>
struct Products {
  static constexpr int kKept = 4;
  __m512i of[kKept][parts_of(T)][N];
};
static_assert(kAddBehind < Products<WeightType::Q4_0, 1>::kKept);

template <WeightType T, int N>
[[gnu::always_inline]] inline void multiply_block(const SliceCall& call, const Slice& slice, int b,
                                                  __m512i (*products)[N]) {
  constexpr bool kSigned = zero_point(T) != 0;
  constexpr int kParts = parts_of(T);
  const std::int8_t* columns = call.quants + std::ptrdiff_t{b} * N * kBlock;
  const auto* weights = reinterpret_cast<const std::byte*>(slice.quants[b]);
  if constexpr (T == WeightType::Q8_0) {
    weights = call.packed + block_at<T>(b) + layout_of(T).scale_bytes;
  }
  load_tile<kColumns, N * kBlock>(columns, kBlock);
  load_tile<kWeights, 512 / kParts>(weights, 64);
  multiply_tiles<kSigned>();
  store_tile<N * 64>(products[0]);
  if constexpr (kParts == 2) {
    load_tile<kColumns, N * kBlock - kBlock / 2>(columns + kBlock / 2, kBlock);
    load_tile<kWeights, 256>(weights + 256, 64);
    multiply_tiles<kSigned>();
    store_tile<N * 64>(products[1]);
  }
}

// sum += a block's part of one column, as in matmul.h.
template <WeightType T>
[[gnu::always_inline]] inline __m512 add_column(__m512i product, __m512i high, __m512 weight_scale,
                                                __m512 second, const BlockScale& column,
                                                __m512 sum) {
  if constexpr (T == WeightType::Q8_0) {
    product = _mm512_add_epi32(product, _mm512_slli_epi32(_mm512_set1_epi32(column.start), 4));
  }
  const __m512 scale = _mm512_set1_ps(column.scale);
  sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(product), _mm512_mul_ps(weight_scale, scale), sum);
  if constexpr (T == WeightType::Q6_K) {
    sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), _mm512_mul_ps(second, scale), sum);
  }
  if constexpr (T == WeightType::Q4_1 || T == WeightType::Q4_K) {
    sum = _mm512_fmadd_ps(second, _mm512_set1_ps(column.scaled_sum), sum);
  }
  return sum;
}

// The sums of N columns over a slice of a group. `First`: unpacks the blocks on the way; the next
// tiles of columns find them.
template <WeightType T, int N, bool First>
void multiply_slice(const SliceCall& call, Slice& slice) {
  __m512 sums[N];
#pragma GCC unroll 16
  for (int c = 0; c < N; ++c) sums[c] = _mm512_setzero_ps();
  if (call.continues) {
#pragma GCC unroll 16
    for (int c = 0; c < N; ++c) {
      sums[c] = _mm512_maskz_loadu_ps(call.rows, call.output + c * call.stride);
    }
  }
  Products<T, N> products;
  Weights::Super super{};
  if constexpr (First) {
    for (int b = 0; b < kUnpackAhead && b < call.blocks; ++b) {
      unpack_block<T>(call.packed, b, super, slice);
    }
  }
  const BlockScale* columns = call.scales;
  for (int b = 0; b < call.blocks + kAddBehind; ++b) {
    if (First && b + kUnpackAhead < call.blocks) {
      unpack_block<T>(call.packed, b + kUnpackAhead, super, slice);
    }
    if (b < call.blocks) {
      multiply_block<T, N>(call, slice, b, products.of[b % Products<T, N>::kKept]);
    }
    const int added = b - kAddBehind;
    if (added < 0) continue;
    const auto* from = products.of[added % Products<T, N>::kKept];
    const __m512 scale = slice.scale[added];
    const __m512 second = has_second(T) ? slice.second[added] : scale;
#pragma GCC unroll 16
    for (int c = 0; c < N; ++c) {
      sums[c] =
          add_column<T>(from[0][c], from[parts_of(T) - 1][c], scale, second, columns[c], sums[c]);
    }
    columns += N;
  }
#pragma GCC unroll 16
  for (int c = 0; c < N; ++c) {
    _mm512_mask_storeu_ps(call.output + c * call.stride, call.rows, sums[c]);
  }
}

using SliceFunction = void (*)(const SliceCall&, Slice&);

template <WeightType T, bool First>
constexpr SliceFunction kSlices[] = {
    multiply_slice<T, 8, First>,  multiply_slice<T, 9, First>,  multiply_slice<T, 10, First>,
    multiply_slice<T, 11, First>, multiply_slice<T, 12, First>, multiply_slice<T, 13, First>,
    multiply_slice<T, 14, First>, multiply_slice<T, 15, First>, multiply_slice<T, 16, First>};
static_assert(kWidthMin == 8 && kTileColumns == 16);

template <bool First>
SliceFunction slice_function(WeightType type, int width) {
  const int at = width - kWidthMin;
  switch (type) {
    case WeightType::Q4_0: return kSlices<WeightType::Q4_0, First>[at];
    case WeightType::Q4_1: return kSlices<WeightType::Q4_1, First>[at];
    case WeightType::Q8_0: return kSlices<WeightType::Q8_0, First>[at];
    case WeightType::Q4_K: return kSlices<WeightType::Q4_K, First>[at];
    case WeightType::Q6_K: return kSlices<WeightType::Q6_K, First>[at];
  }
  return nullptr;
}

void multiply(const PackedMatrix& weights, const Activations& activations, int first_group,
              int last_group, const MatmulOutput& output) {
  if (activations.columns < kColumnsMin) {
    return kMatmulAvx512Vnni.multiply(weights, activations, first_group, last_group, output);
  }
  const PackedLayout layout = layout_of(weights.type);
  const int blocks = weights.depth / kBlock;
  Slice slice;
  SliceCall call{};
  call.stride = output.column_stride;
  for (int group = first_group; group < last_group; ++group) {
    const int left = weights.rows - group * kGroupRows;
    call.rows = static_cast<__mmask16>(left >= kGroupRows ? 0xffff : (1 << left) - 1);
    const std::byte* packed =
        weights.data + static_cast<std::size_t>(group) * weights.group_bytes();
    for (int begin = 0; begin < blocks; begin += kSliceBlocks) {
      call.packed = packed + layout.group_bytes(begin);
      call.blocks = blocks - begin < kSliceBlocks ? blocks - begin : kSliceBlocks;
      call.continues = begin != 0;
      for (int index = 0; index < tiles_of(activations.columns); ++index) {
        const Tile tile = tile_at(activations.columns, index);
        const std::ptrdiff_t at = std::ptrdiff_t{begin} * tile.width;
        call.quants = activations.tile_quants(tile) + at * kBlock;
        call.scales = activations.tile_scales(tile) + at;
        call.output = output.data + tile.first * output.column_stride + group * kGroupRows;
        set_shapes(tile.width, parts_of(weights.type));
        const SliceFunction function = index == 0 ? slice_function<true>(weights.type, tile.width)
                                                  : slice_function<false>(weights.type, tile.width);
        function(call, slice);
      }
    }
  }
}

void quantize(const float* column, int blocks, std::int8_t* quants, BlockScale* scales,
              TilePlace place) {
  kMatmulAvx512Vnni.quantize(column, blocks, quants, scales, place);
}

}  // namespace

const MatmulKernels kMatmulAmx = {.quantize = quantize, .multiply = multiply};

}  // namespace flotilla::kernels
