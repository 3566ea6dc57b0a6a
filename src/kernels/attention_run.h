#pragma once

#include "kernels/attention_block.h"
#include "kernels/exponential.h"

// Three passes over the cells that a row sees:
//   1. scores = scale * (query . key), their maximum, and the largest |value|
//   2. weights p = exp(score - maximum), and their sum l
//   3. sums of p * value
// A sum of floats depends on the order of its terms, and cells of one sequence lie in any order in
// a cache that sequences share. So each step is made independent of it:
//   maxima are exact.
//   l: each p is rounded to a multiple of 2^-32 and summed in f64, which is exact up to 2^20 cells.
//   sum of p * value: the accumulator starts at C = 1.5 * 2^e with 2^(e-1) > 1.06 * l * max
//   |value|, so it never leaves [2^e, 2^(e+1)) and its unit is 2^(e-23) throughout. An fma then
//   adds p * value rounded to that unit: the same amount whatever stands in the accumulator, but
//   for ties, which round to even. p's last bit is set, so there are none: the product's lowest set
//   bit is at least 23 places below its highest, a tie needs it at 2^(e-24), hence |p * value| >=
//   2^(e-1): excluded.
// The error of a term is at most half a unit, 2^-22 * l * max |value|, which is less than what f16
// values bring (2^-12). The 6 % are for the rounding of l and of the sums, up to 2^17 cells.
// `Ops` is an instruction set's vector of 16 floats. All compute the same bits: fma is one
// rounding, a sum over the lanes has one order (below), all else is lane by lane.
namespace flotilla::kernels {

template <class Ops, int Vectors>
class BlockRun {
 public:
  explicit BlockRun(const AttentionBlock& block)
      : block_(block),
        call_(*block.call),
        group_(call_.heads / call_.kv_heads),
        heads_(group_ * block.kv_heads),
        key_(call_.key + block.stream * call_.key_stream + block.kv_head * call_.key_head),
        value_(call_.value + block.stream * call_.value_stream + block.kv_head * call_.value_head) {
  }

  void run() {
    if (block_.rows == 1) {
      run_one_row();
      return;
    }
    score();
    for (int row = 0; row < block_.rows; ++row) {
      for (int head = 0; head < heads_; ++head) weigh(row, head);
    }
    sum_values();
  }

 private:
  using Vector = typename Ops::Vector;
  using Exp = Exponential<Ops>;

  static constexpr int kSize = 16 * Vectors;
  static constexpr std::uint16_t kAll = 0xffff;
  static constexpr float kMinusInfinity = -__builtin_inff();

  // `head` counts the query heads of this block.
  int lane(int row, int head) const { return row * heads_ + head; }
  float* scores(int lane) const {
    return block_.scores + static_cast<std::ptrdiff_t>(lane) * block_.tiles * kTileCells;
  }
  std::uint16_t visible(int row, int tile) const {
    return block_.visible[static_cast<std::ptrdiff_t>(row) * block_.tiles + tile];
  }
  const float* query(int row, int head) const {
    return call_.query + block_.stream * call_.query_stream +
           (block_.first_row + row) * call_.query_row +
           (block_.kv_head * group_ + head) * call_.query_head;
  }
  float* output(int row, int head) const {
    const std::ptrdiff_t at =
        (static_cast<std::ptrdiff_t>(block_.stream) * call_.stream_rows + block_.first_row + row) *
            call_.heads +
        block_.kv_head * group_ + head;
    return call_.output + at * kSize;
  }

  // Cells of a tile and of the next one, whose lines are to be on their way meanwhile: no hardware
  // sees where they are. One cell after the other, since a thread can wait for some lines only.
  struct TileCells {
    const std::int32_t* now;
    const std::int32_t* next;
  };
  TileCells cells_of(int tile) const {
    const std::int32_t* cells = block_.cells + tile * kTileCells;
    return {.now = cells, .next = cells + (tile + 1 < block_.tiles ? kTileCells : 0)};
  }
  static void prefetch(const std::uint16_t* from) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; v += 2) __builtin_prefetch(from + 16 * v);
  }

  // 16 cells as f32 into block_.tile.
  void convert(const std::uint16_t* base, std::ptrdiff_t stride, int tile) const {
    const TileCells cells = cells_of(tile);
    float* to = block_.tile;
    for (int i = 0; i < kTileCells; ++i, to += kSize) {
      const std::uint16_t* from = base + cells.now[i] * stride;
      prefetch(base + cells.next[i] * stride);
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) {
        Ops::store(to + 16 * v, Ops::load_f16(from + 16 * v));
      }
    }
  }

  void score() {
    for (int i = 0; i < block_.rows * block_.kv_heads; ++i) {
      Ops::store_halves(block_.value_max + 32 * i, Ops::no_halves());
    }
    for (int tile = 0; tile < block_.tiles; ++tile) {
      for (int kv_head = 0; kv_head < block_.kv_heads; ++kv_head) {
        convert(key_ + kv_head * call_.key_head, call_.key_cell, tile);
        for (int row = 0; row < block_.rows; ++row) {
          const std::uint16_t seen = visible(row, tile);
          for (int head = kv_head * group_; head < (kv_head + 1) * group_; ++head) {
            float* to = scores(lane(row, head)) + tile * kTileCells;
            Ops::store(to,
                       seen == 0 ? Ops::set(kMinusInfinity) : score_tile(query(row, head), seen));
          }
        }
        find_largest_values(tile, kv_head);
      }
    }
  }

  Vector score_tile(const float* query, std::uint16_t seen) const {
    Vector q[Vectors];
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) q[v] = Ops::load(query + 16 * v);
    typename Ops::Four four[4];
    for (int i = 0; i < 4; ++i) {
      Vector products[4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const float* key = block_.tile + (4 * i + j) * kSize;
        products[j] = Ops::mul(q[0], Ops::load(key));
#pragma GCC unroll 16
        for (int v = 1; v < Vectors; ++v) {
          products[j] = Ops::fma(q[v], Ops::load(key + 16 * v), products[j]);
        }
      }
      four[i] = Ops::sums_of_4(products[0], products[1], products[2], products[3]);
    }
    return score_of(four, seen);
  }

  Vector score_of(const typename Ops::Four* four, std::uint16_t seen) const {
    Vector score = Ops::mul(Ops::sums(four), Ops::set(call_.scale));
    if (call_.soft_cap != 0) {
      const Vector cap = Ops::set(call_.soft_cap);
      score = Ops::mul(cap, Exp::tanh(Ops::div(score, cap)));
    }
    return Ops::select(seen, score, kMinusInfinity);
  }

  // A row on its own, as where sequences decode. Nobody shares its keys and values but the heads of
  // a group: converted in registers, they serve some of these at once.
  static constexpr int kHeads = Vectors <= 4 ? 4 : Vectors <= 8 ? 2 : 1;

  void run_one_row() {
    for (int i = 0; i < block_.kv_heads; ++i) {
      Ops::store_halves(value_max(0, i), Ops::no_halves());
    }
    for (int tile = 0; tile < block_.tiles; ++tile) {
      for (int kv_head = 0; kv_head < block_.kv_heads; ++kv_head) {
        group_step<true>(kv_head, tile);
        find_largest_values(tile, kv_head);
      }
    }
    for (int head = 0; head < heads_; ++head) weigh(0, head);
    for (int tile = 0; tile < block_.tiles; ++tile) {
      for (int kv_head = 0; kv_head < block_.kv_heads; ++kv_head) group_step<false>(kv_head, tile);
    }
    for (int head = 0; head < heads_; ++head) finish(0, head);
  }

  // One tile of the group's heads, as many at once as registers allow.
  template <bool Score>
  void group_step(int kv_head, int tile) {
    const int end = (kv_head + 1) * group_;
    for (int head = kv_head * group_; head < end;) {
      head += heads_step<Score, kHeads>(kv_head, head, end - head, tile);
    }
  }
  // `Heads` of the `left` heads, or all of them where there are fewer.
  template <bool Score, int Heads>
  int heads_step(int kv_head, int head, int left, int tile) {
    if constexpr (Heads > 1) {
      if (left < Heads) return heads_step<Score, Heads - 1>(kv_head, head, left, tile);
    }
    if constexpr (Score) {
      score_heads<Heads>(kv_head, head, tile);
    } else {
      sum_heads<Heads>(kv_head, head, tile);
    }
    return Heads;
  }

  template <int Heads>
  void score_heads(int kv_head, int head, int tile) {
    const TileCells cells = cells_of(tile);
    const std::uint16_t* keys = key_ + kv_head * call_.key_head;
    const float* queries[Heads];
#pragma GCC unroll 4
    for (int h = 0; h < Heads; ++h) queries[h] = query(0, head + h);
    typename Ops::Four four[Heads][4];
    for (int i = 0; i < 4; ++i) {
      Vector products[Heads][4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const std::uint16_t* from = keys + cells.now[4 * i + j] * call_.key_cell;
        prefetch(keys + cells.next[4 * i + j] * call_.key_cell);
        Vector key[Vectors];
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) key[v] = Ops::load_f16(from + 16 * v);
#pragma GCC unroll 4
        for (int h = 0; h < Heads; ++h) {
          products[h][j] = Ops::mul(Ops::load(queries[h]), key[0]);
#pragma GCC unroll 16
          for (int v = 1; v < Vectors; ++v) {
            products[h][j] = Ops::fma(Ops::load(queries[h] + 16 * v), key[v], products[h][j]);
          }
        }
      }
#pragma GCC unroll 4
      for (int h = 0; h < Heads; ++h) {
        four[h][i] = Ops::sums_of_4(products[h][0], products[h][1], products[h][2], products[h][3]);
      }
    }
    const std::uint16_t seen = visible(0, tile);
#pragma GCC unroll 4
    for (int h = 0; h < Heads; ++h) {
      Ops::store(scores(head + h) + tile * kTileCells, score_of(four[h], seen));
    }
  }

  template <int Heads>
  void sum_heads(int kv_head, int head, int tile) {
    const TileCells cells = cells_of(tile);
    const std::uint16_t* values = value_ + kv_head * call_.value_head;
    float* to = block_.sums + head * kSize;
    const float* weights = scores(head) + tile * kTileCells;
    const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(block_.tiles) * kTileCells;
    Vector sums[Heads][Vectors];
#pragma GCC unroll 4
    for (int h = 0; h < Heads; ++h) {
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) sums[h][v] = Ops::load(to + h * kSize + 16 * v);
    }
    // Cells of a last tile that is not full are seen first, as list_cells puts them.
    const int count = __builtin_popcount(visible(0, tile));
    for (int i = 0; i < count; ++i) {
      const std::uint16_t* from = values + cells.now[i] * call_.value_cell;
      prefetch(values + cells.next[i] * call_.value_cell);
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) {
        const Vector value = Ops::load_f16(from + 16 * v);
#pragma GCC unroll 4
        for (int h = 0; h < Heads; ++h) {
          sums[h][v] = Ops::fma(Ops::set(weights[h * stride + i]), value, sums[h][v]);
        }
      }
    }
#pragma GCC unroll 4
    for (int h = 0; h < Heads; ++h) {
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) Ops::store(to + h * kSize + 16 * v, sums[h][v]);
    }
  }

  // |value| as f16 bits orders like the numbers. Lane j of 32: the largest of elements 32 i + j.
  typename Ops::Halves largest_of(int cell, int kv_head) const {
    const std::uint16_t* from = value_ + cell * call_.value_cell + kv_head * call_.value_head;
    typename Ops::Halves largest = Ops::no_halves();
#pragma GCC unroll 8
    for (int v = 0; v + 1 < Vectors; v += 2) {
      largest = Ops::max_size(largest, Ops::load_halves(from + 16 * v));
    }
    if constexpr (Vectors % 2 != 0) {
      largest = Ops::max_size(largest, Ops::load_16_halves(from + 16 * (Vectors - 1)));
    }
    return largest;
  }

  void find_largest_values(int tile, int kv_head) const {
    const TileCells cells = cells_of(tile);
    typename Ops::Halves all = Ops::no_halves();
    for (int i = 0; i < kTileCells; ++i) {
      prefetch(value_ + cells.next[i] * call_.value_cell + kv_head * call_.value_head);
      all = Ops::max_size(all, largest_of(cells.now[i], kv_head));
    }
    for (int row = 0; row < block_.rows; ++row) {
      const std::uint16_t seen = visible(row, tile);
      std::uint16_t* to = value_max(row, kv_head);
      typename Ops::Halves largest = Ops::load_halves(to);
      if (seen == kAll) {
        largest = Ops::max_size(largest, all);
      } else {
        for (unsigned left = seen; left != 0; left &= left - 1) {
          largest = Ops::max_size(largest, largest_of(cells.now[__builtin_ctz(left)], kv_head));
        }
      }
      Ops::store_halves(to, largest);
    }
  }
  std::uint16_t* value_max(int row, int kv_head) const {
    return block_.value_max + 32 * (static_cast<std::ptrdiff_t>(row) * block_.kv_heads + kv_head);
  }

  // Scores -> weights; the accumulators' start; what the sums will be divided by.
  void weigh(int row, int head) {
    float* weights = scores(lane(row, head));
    Vector largest = Ops::set(kMinusInfinity);
    for (int tile = 0; tile < block_.tiles; ++tile) {
      largest = Ops::max(largest, Ops::load(weights + tile * kTileCells));
    }
    const Vector maximum = Ops::set(Ops::largest(largest));
    typename Ops::Total total = Ops::no_total();
    for (int tile = 0; tile < block_.tiles; ++tile) {
      const std::uint16_t seen = visible(row, tile);
      float* at = weights + tile * kTileCells;
      if (seen == 0) {
        Ops::store(at, Ops::set(0));
        continue;
      }
      const Vector weight =
          Ops::select(seen, Ops::odd(Exp::exp(Ops::sub(Ops::load(at), maximum))), 0);
      Ops::store(at, weight);
      Ops::add_to(total, weight);
    }
    const double sum = Ops::sum(total);
    const double bound =
        1.0625 * sum *
        static_cast<double>(Ops::largest_half(Ops::load_halves(value_max(row, head / group_))));
    float* sums = block_.sums + lane(row, head) * kSize;
    const Vector start = Ops::set(accumulator_start(bound));
    for (int v = 0; v < Vectors; ++v) Ops::store(sums + 16 * v, start);
    // Kept until the end in the output's own place: start and divisor.
    float* out = output(row, head);
    out[0] = accumulator_start(bound);
    out[1] = sum > 0 ? static_cast<float>(1.0 / sum) : 0.0F;
  }

  // 1.5 * 2^e with 2^(e-1) > bound.
  static float accumulator_start(double bound) {
    std::int64_t exponent = (__builtin_bit_cast(std::int64_t, bound) >> 52 & 2047) - 1023 + 2;
    if (exponent < -100) exponent = -100;
    if (exponent > 126) exponent = 126;
    return __builtin_bit_cast(float, static_cast<std::int32_t>((exponent + 127) << 23 | 1 << 22));
  }

  void sum_values() {
    for (int tile = 0; tile < block_.tiles; ++tile) {
      for (int kv_head = 0; kv_head < block_.kv_heads; ++kv_head) {
        convert(value_ + kv_head * call_.value_head, call_.value_cell, tile);
        for (int row = 0; row < block_.rows; ++row) {
          const std::uint16_t seen = visible(row, tile);
          if (seen == 0) continue;
          for (int head = kv_head * group_; head < (kv_head + 1) * group_; ++head) {
            const int at = lane(row, head);
            add_tile(scores(at) + tile * kTileCells, seen, block_.sums + at * kSize);
          }
        }
      }
    }
    for (int row = 0; row < block_.rows; ++row) {
      for (int head = 0; head < heads_; ++head) finish(row, head);
    }
  }

  void add_tile(const float* weights, std::uint16_t seen, float* to) const {
    Vector sums[Vectors];
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) sums[v] = Ops::load(to + 16 * v);
    const auto add = [&](int i) __attribute__((always_inline)) {
      const Vector weight = Ops::set(weights[i]);
      const float* value = block_.tile + i * kSize;
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) {
        sums[v] = Ops::fma(weight, Ops::load(value + 16 * v), sums[v]);
      }
    };
    if (seen == kAll) {
#pragma GCC unroll 4
      for (int i = 0; i < kTileCells; ++i) add(i);
    } else {
      // Not 0 * value: a value of another sequence may be infinite.
      for (unsigned left = seen; left != 0; left &= left - 1) add(__builtin_ctz(left));
    }
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) Ops::store(to + 16 * v, sums[v]);
  }

  void finish(int row, int head) {
    const float* sums = block_.sums + lane(row, head) * kSize;
    float* out = output(row, head);
    const Vector start = Ops::set(out[0]);
    const Vector divisor = Ops::set(out[1]);
    for (int v = 0; v < Vectors; ++v) {
      const Vector sum = Ops::sub(Ops::load(sums + 16 * v), start);
      Ops::store(out + 16 * v, Ops::mul(sum, divisor));
    }
  }

  const AttentionBlock& block_;
  const AttentionCall& call_;
  const int group_;  // query heads of a kv head
  const int heads_;  // query heads of the block
  const std::uint16_t* const key_;
  const std::uint16_t* const value_;
};

// BlockRun for the call's head size.
template <class Ops>
void attend_block_with(const AttentionBlock& block) {
  switch (block.call->size / 16) {
    case 4: BlockRun<Ops, 4>(block).run(); break;
    case 5: BlockRun<Ops, 5>(block).run(); break;
    case 6: BlockRun<Ops, 6>(block).run(); break;
    case 7: BlockRun<Ops, 7>(block).run(); break;
    case 8: BlockRun<Ops, 8>(block).run(); break;
    case 9: BlockRun<Ops, 9>(block).run(); break;
    case 10: BlockRun<Ops, 10>(block).run(); break;
    case 11: BlockRun<Ops, 11>(block).run(); break;
    case 12: BlockRun<Ops, 12>(block).run(); break;
    case 13: BlockRun<Ops, 13>(block).run(); break;
    case 14: BlockRun<Ops, 14>(block).run(); break;
    case 15: BlockRun<Ops, 15>(block).run(); break;
    default: BlockRun<Ops, 16>(block).run(); break;
  }
}

}  // namespace flotilla::kernels
