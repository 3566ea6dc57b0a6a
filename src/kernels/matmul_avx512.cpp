#include <immintrin.h>

#include "kernels/matmul_512.h"
#include "kernels/matmul_sets.h"

// Compiled for AVX512-VNNI: includes nothing whose inline functions other files share, since the
// linker might keep this file's copy of them.
namespace flotilla::kernels {
namespace {

struct Avx512Vnni;
using Weights = Weights512<Avx512Vnni>;
using Block = Weights::Block;

inline __m512i broadcast(std::int32_t x) { return _mm512_set1_epi32(x); }

// sum += the block's part of one column. Integers stay far below 2^31: 32 * 255 * 127 < 2^20.
// The zero point (8, 32 or 128 times the sum of q) is where the integer sums start.
// `Chains`: two integer sums side by side hide the latency of vpdpbusd (5 cycles, 2 a cycle) where
// few columns do not; they cost an addition of 13 operations.
template <WeightType T, int Chains>
[[gnu::always_inline]] inline __m512 add_column(const Block& block, const std::int8_t* quants,
                                                const BlockScale& column, __m512 sum) {
  // Four successive activations of the column in each 32-bit lane.
  const auto* q = reinterpret_cast<const std::int32_t*>(quants);
  __m512i low = _mm512_setzero_si512();
  __m512i high = _mm512_setzero_si512();
  constexpr bool kOneChain = Chains == 1 && T != WeightType::Q6_K;
  if constexpr (T == WeightType::Q4_0) low = broadcast(column.start);
  if constexpr (T == WeightType::Q8_0) low = _mm512_slli_epi32(broadcast(column.start), 4);
  if constexpr (T == WeightType::Q6_K) {
    low = _mm512_sub_epi32(broadcast(column.start), broadcast(column.start_high));
    low = _mm512_slli_epi32(low, 2);
    high = _mm512_slli_epi32(broadcast(column.start_high), 2);
  }
  if constexpr (kOneChain) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) low = _mm512_dpbusd_epi32(low, block.v[j], broadcast(q[j]));
  } else {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      low = _mm512_dpbusd_epi32(low, block.v[j], broadcast(q[j]));
      high = _mm512_dpbusd_epi32(high, block.v[j + 4], broadcast(q[j + 4]));
    }
  }
  const __m512 scale = _mm512_set1_ps(column.scale);
  if constexpr (T == WeightType::Q6_K) {
    sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(low), _mm512_mul_ps(block.scale, scale), sum);
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), _mm512_mul_ps(block.scale_high, scale), sum);
  }
  const __m512 dot = _mm512_cvtepi32_ps(kOneChain ? low : _mm512_add_epi32(low, high));
  sum = _mm512_fmadd_ps(dot, _mm512_mul_ps(block.scale, scale), sum);
  if constexpr (T == WeightType::Q4_1 || T == WeightType::Q4_K) {
    sum = _mm512_fmadd_ps(block.minimum, _mm512_set1_ps(column.scaled_sum), sum);
  }
  return sum;
}

struct TileCall {
  const std::byte* group;
  int blocks;
  const std::int8_t* quants;  // [blocks][N][32]
  const BlockScale* scales;   // [blocks][N]
  float* output;
  std::ptrdiff_t stride;
  __mmask16 rows;
};

// Registers: N sums, 8 of weights, scale and minimum, two integer sums: 16 columns fill the 32.
template <WeightType T, int N>
void multiply_tile(const TileCall& call) {
  __m512 sums[N];
#pragma GCC unroll 16
  for (int c = 0; c < N; ++c) sums[c] = _mm512_setzero_ps();
  const std::byte* at = call.group;
  const std::int8_t* quants = call.quants;
  const BlockScale* scales = call.scales;
  Weights::Super super{};
  Block block{};
  for (int b = 0; b < call.blocks; ++b) {
    if constexpr (layout_of(T).super_bytes != 0) {
      if (b % kSuperBlock == 0) {
        Weights::load_super<T>(at, super);
        at += layout_of(T).super_bytes;
      }
    }
    Weights::load_scales<T>(at, super, block);
    Weights::unpack<T>(at + layout_of(T).scale_bytes, block);
    at += layout_of(T).block_bytes();
    // 4 KiB ahead: the hardware's own prefetch stops at page ends.
    for (int line = 0; line < layout_of(T).block_bytes(); line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(at) + 4096 + line, _MM_HINT_T0);
    }
#pragma GCC unroll 16
    for (int c = 0; c < N; ++c) {
      sums[c] = add_column<T, N >= 6 ? 1 : 2>(block, quants + kBlock * c, scales[c], sums[c]);
    }
    quants += kBlock * N;
    scales += N;
  }
#pragma GCC unroll 16
  for (int c = 0; c < N; ++c) {
    _mm512_mask_storeu_ps(call.output + c * call.stride, call.rows, sums[c]);
  }
}

using TileFunction = void (*)(const TileCall&);

template <WeightType T>
constexpr TileFunction kTiles[kTileColumns] = {
    multiply_tile<T, 1>,  multiply_tile<T, 2>,  multiply_tile<T, 3>,  multiply_tile<T, 4>,
    multiply_tile<T, 5>,  multiply_tile<T, 6>,  multiply_tile<T, 7>,  multiply_tile<T, 8>,
    multiply_tile<T, 9>,  multiply_tile<T, 10>, multiply_tile<T, 11>, multiply_tile<T, 12>,
    multiply_tile<T, 13>, multiply_tile<T, 14>, multiply_tile<T, 15>, multiply_tile<T, 16>};

TileFunction tile_function(WeightType type, int width) {
  switch (type) {
    case WeightType::Q4_0: return kTiles<WeightType::Q4_0>[width - 1];
    case WeightType::Q4_1: return kTiles<WeightType::Q4_1>[width - 1];
    case WeightType::Q8_0: return kTiles<WeightType::Q8_0>[width - 1];
    case WeightType::Q4_K: return kTiles<WeightType::Q4_K>[width - 1];
    case WeightType::Q6_K: return kTiles<WeightType::Q6_K>[width - 1];
  }
  return nullptr;
}

// Weights that stay in the second-level cache while all tiles pass over them.
constexpr std::size_t kChunkBytes = 128 << 10;

void multiply(const PackedMatrix& weights, const Activations& activations, int first_group,
              int last_group, const MatmulOutput& output) {
  const std::size_t group_bytes = weights.group_bytes();
  int chunk = static_cast<int>(kChunkBytes / group_bytes);
  if (chunk < 1) chunk = 1;
  TileCall call{};
  call.blocks = weights.depth / kBlock;
  call.stride = output.column_stride;
  for (int begin = first_group; begin < last_group; begin += chunk) {
    const int end = begin + chunk < last_group ? begin + chunk : last_group;
    for (int index = 0; index < tiles_of(activations.columns); ++index) {
      const Tile tile = tile_at(activations.columns, index);
      const TileFunction function = tile_function(weights.type, tile.width);
      call.quants = activations.tile_quants(tile);
      call.scales = activations.tile_scales(tile);
      float* column = output.data + tile.first * output.column_stride;
      for (int group = begin; group < end; ++group) {
        const int left = weights.rows - group * kGroupRows;
        call.group = weights.data + static_cast<std::size_t>(group) * group_bytes;
        call.output = column + group * kGroupRows;
        call.rows = static_cast<__mmask16>(left >= kGroupRows ? 0xffff : (1 << left) - 1);
        function(call);
      }
    }
  }
}

// The largest of each vector's lanes, as lanes 0-3.
inline __m128 largest_of_4(const __m512* m) {
  const __m512 a = _mm512_max_ps(_mm512_unpacklo_ps(m[0], m[1]), _mm512_unpackhi_ps(m[0], m[1]));
  const __m512 b = _mm512_max_ps(_mm512_unpacklo_ps(m[2], m[3]), _mm512_unpackhi_ps(m[2], m[3]));
  const __m512d x = _mm512_castps_pd(a);
  const __m512d y = _mm512_castps_pd(b);
  const __m512 c = _mm512_max_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)),
                                 _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
  const __m256 d = _mm256_max_ps(_mm512_castps512_ps256(c), _mm512_extractf32x8_ps(c, 1));
  return _mm_max_ps(_mm256_castps256_ps128(d), _mm256_extractf128_ps(d, 1));
}

// Two blocks of 16 + 16 integers as 64 bytes in order.
inline __m512i to_bytes(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i mixed = _mm512_packs_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
  return _mm512_permutexvar_epi32(order, mixed);
}

// Sums of the four quarters of 64 bytes, in lanes 0-3.
inline __m128i sums_of_quarters(__m512i bytes) {
  __m512i sums = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), bytes);
  sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_BADC));
  sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_CDAB));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
  return _mm512_castsi512_si128(_mm512_permutexvar_epi32(order, sums));
}

// Four blocks share their reductions and divisions: 512 columns of 576 take 152 us, one block at a
// time 208.
void quantize_4(const float* from, std::int8_t* quants, BlockScale* scales, int tile_width) {
  __m512 largest[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    largest[i] = _mm512_max_ps(_mm512_abs_ps(_mm512_loadu_ps(from + 32 * i)),
                               _mm512_abs_ps(_mm512_loadu_ps(from + 32 * i + 16)));
  }
  const __m128 scale = _mm_div_ps(largest_of_4(largest), _mm_set1_ps(127.0F));
  const __m128 inverse = _mm_maskz_div_ps(_mm_cmp_ps_mask(scale, _mm_setzero_ps(), _CMP_NEQ_UQ),
                                          _mm_set1_ps(1.0F), scale);
  const __m512 inverses = _mm512_castps128_ps512(inverse);
  __m512i q[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512 by = _mm512_permutexvar_ps(_mm512_set1_epi32(i), inverses);
    q[2 * i] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(from + 32 * i), by));
    q[2 * i + 1] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(from + 32 * i + 16), by));
  }
  const __m512i low = to_bytes(q[0], q[1], q[2], q[3]);
  const __m512i high = to_bytes(q[4], q[5], q[6], q[7]);
  const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(tile_width) * kBlock;
  const auto put = [quants, stride](int block, __m256i bytes) __attribute__((always_inline)) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(quants + block * stride), bytes);
  };
  put(0, _mm512_castsi512_si256(low));
  put(1, _mm512_extracti64x4_epi64(low, 1));
  put(2, _mm512_castsi512_si256(high));
  put(3, _mm512_extracti64x4_epi64(high, 1));
  // Sums of the halves of blocks 0 and 1, 2 and 3.
  const __m128 a = _mm_castsi128_ps(sums_of_quarters(low));
  const __m128 b = _mm_castsi128_ps(sums_of_quarters(high));
  const __m128i first = _mm_castps_si128(_mm_shuffle_ps(a, b, 0x88));
  const __m128i second = _mm_castps_si128(_mm_shuffle_ps(a, b, 0xdd));
  const __m128i sum = _mm_add_epi32(first, second);
  __m128 fields[4] = {scale, _mm_mul_ps(scale, _mm_cvtepi32_ps(sum)),
                      _mm_castsi128_ps(_mm_mullo_epi32(sum, _mm_set1_epi32(-8))),
                      _mm_castsi128_ps(_mm_mullo_epi32(second, _mm_set1_epi32(-8)))};
  _MM_TRANSPOSE4_PS(fields[0], fields[1], fields[2], fields[3]);
  static_assert(sizeof(BlockScale) == 16);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm_storeu_ps(reinterpret_cast<float*>(scales + static_cast<std::ptrdiff_t>(i) * tile_width),
                  fields[i]);
  }
}

void quantize(const float* column, int blocks, std::int8_t* quants, BlockScale* scales,
              TilePlace place) {
  const int tile_width = place.width;
  int b = 0;
  for (; b + 4 <= blocks; b += 4) {
    quantize_4(column + b * kBlock, quants + static_cast<std::ptrdiff_t>(b) * tile_width * kBlock,
               scales + static_cast<std::ptrdiff_t>(b) * tile_width, tile_width);
  }
  if (b == blocks) return;
  float last[4 * kBlock] = {};
  std::int8_t last_quants[4 * kBlock];
  BlockScale last_scales[4];
  const auto left = static_cast<std::size_t>(blocks - b);
  __builtin_memcpy(last, column + b * kBlock, left * kBlock * sizeof(float));
  quantize_4(last, last_quants, last_scales, 1);
  for (int i = 0; b < blocks; ++b, ++i) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(b) * tile_width;
    __builtin_memcpy(quants + at * kBlock, last_quants + i * kBlock, kBlock);
    scales[at] = last_scales[i];
  }
}

}  // namespace

const MatmulKernels kMatmulAvx512Vnni = {.quantize = quantize, .multiply = multiply};

}  // namespace flotilla::kernels
