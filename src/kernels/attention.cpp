#include "kernels/attention.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

#include "kernels/attention_block.h"

namespace flotilla::kernels {
namespace {

// Rows that share one conversion of keys and values to f32. Scores of a block stay in the
// second-level cache: 512 KiB.
constexpr int kRowsMax = 16;
constexpr std::int64_t kScoresMax = 128 << 10;

const AttentionKernels* kernels_of(InstructionSet set) {
#if defined(__x86_64__)
  switch (set) {
    case InstructionSet::Amx:
    case InstructionSet::Avx512Vnni: return &kAttentionAvx512Vnni;
    case InstructionSet::AvxVnni:
    case InstructionSet::Avx2: return &kAttentionAvx2;
    default: return nullptr;
  }
#elif defined(__aarch64__)
  return set == InstructionSet::None ? nullptr : &kAttentionNeon;
#else
  (void)set;
  return nullptr;
#endif
}

// Grows, never shrinks, 64-byte aligned, not initialised.
template <class T>
class Buffer {
 public:
  ~Buffer() { std::free(data_); }
  T* at_least(std::size_t count) {
    if (count > count_) {
      std::free(data_);
      const std::size_t bytes = (count * sizeof(T) * 5 / 4 + 63) / 64 * 64;
      data_ = static_cast<T*>(std::aligned_alloc(64, bytes));
      if (data_ == nullptr) throw std::bad_alloc();
      count_ = bytes / sizeof(T);
    }
    return data_;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

struct Rows {
  int stream;
  int first;
  int count;
};

}  // namespace

struct AttentionScratch::Buffers {
  std::vector<Rows> blocks;
  std::vector<int> row_visible;
  Buffer<std::uint64_t> bits;  // [rows of a block][words]
  Buffer<std::uint64_t> united;
  Buffer<std::int32_t> cells;
  Buffer<std::uint16_t> visible;
  Buffer<float> scores;
  Buffer<float> tile;
  Buffer<float> sums;
  Buffer<std::uint16_t> value_max;
};

AttentionScratch::AttentionScratch() : buffers_(std::make_unique<Buffers>()) {}
AttentionScratch::~AttentionScratch() = default;

// One call on one thread.
class AttentionWork {
 public:
  AttentionWork(const AttentionKernels& kernels, const AttentionCall& call,
                AttentionScratch& scratch)
      : kernels_(kernels),
        call_(call),
        buffers_(*scratch.buffers_),
        words_(static_cast<std::size_t>((call.cells + 63) / 64)),
        group_(call.heads / call.kv_heads) {}

  void run(std::atomic<int>& next) {
    form_blocks();
    // A piece is a block and some kv heads; blocks that see most come last, and the pieces at the
    // end of a prompt are the largest: from the back, the small ones fill the gaps between threads.
    const int heads = heads_together();
    const int parts = (call_.kv_heads + heads - 1) / heads;
    const int pieces = static_cast<int>(buffers_.blocks.size()) * parts;
    int listed = -1;
    AttentionBlock block;
    for (;;) {
      const int piece = pieces - 1 - next.fetch_add(1, std::memory_order::relaxed);
      if (piece < 0) return;
      const int index = piece / parts;
      if (index != listed) prepare(buffers_.blocks[static_cast<std::size_t>(index)], heads, block);
      listed = index;
      block.kv_head = piece % parts * heads;
      block.kv_heads = std::min(heads, call_.kv_heads - block.kv_head);
      kernels_.attend_block(block);
    }
  }

 private:
  const std::uint16_t* mask_of(int stream, int row) const {
    return call_.mask + stream * call_.mask_stream + row * call_.mask_row;
  }

  // Successive rows that share more than half of what they see form a block. Every thread finds the
  // same blocks; that costs 1/32 of an instruction a cell.
  void form_blocks() {
    buffers_.blocks.clear();
    largest_ = 1;
    std::uint64_t* current = buffers_.bits.at_least(2 * words_);
    std::uint64_t* previous = current + words_;
    for (int stream = 0; stream < call_.streams; ++stream) {
      int previous_count = 0;
      for (int row = 0; row < call_.stream_rows; ++row) {
        kernels_.visible_bits(mask_of(stream, row), call_.cells, current);
        int count = 0;
        int common = 0;
        for (std::size_t word = 0; word < words_; ++word) {
          count += std::popcount(current[word]);
          if (row != 0) common += std::popcount(current[word] & previous[word]);
        }
        const bool joins = row != 0 && 2 * common > std::max(count, previous_count) &&
                           buffers_.blocks.back().count < rows_max(count);
        if (joins) {
          Rows& block = buffers_.blocks.back();
          block.count += 1;
        } else {
          buffers_.blocks.push_back({.stream = stream, .first = row, .count = 1});
        }
        const std::int64_t rows = buffers_.blocks.back().count;
        largest_ = std::max(largest_, rows * (count + kTileCells) * 2);
        previous_count = count;
        std::swap(current, previous);
      }
    }
  }

  // As many kv heads as leave each thread some pieces, and the scores in the cache: what they need
  // of a cell lies side by side, and the hardware fetches ahead of reads that go on from each
  // other.
  int heads_together() const {
    constexpr int kPiecesPerThread = 4;
    const int blocks = std::max(1, static_cast<int>(buffers_.blocks.size()));
    const int parts = std::clamp(kPiecesPerThread * call_.threads / blocks, 1, call_.kv_heads);
    const std::int64_t fitting = kScoresMax / (largest_ * group_);
    return static_cast<int>(std::clamp<std::int64_t>(fitting, 1, call_.kv_heads / parts));
  }

  int rows_max(int visible) const {
    const std::int64_t row_scores = std::int64_t{group_} * (visible + kTileCells) * 2;
    return static_cast<int>(std::clamp<std::int64_t>(kScoresMax / row_scores, 1, kRowsMax));
  }

  void prepare(const Rows& rows, int kv_heads, AttentionBlock& block) {
    block.call = &call_;
    block.stream = rows.stream;
    block.first_row = rows.first;
    block.rows = rows.count;
    list_cells(rows, block);
    const std::size_t pairs = static_cast<std::size_t>(rows.count) * kv_heads;
    const std::size_t lanes = pairs * group_;
    const auto size = static_cast<std::size_t>(call_.size);
    block.scores =
        buffers_.scores.at_least(lanes * static_cast<std::size_t>(block.tiles + 1) * kTileCells);
    block.tile = buffers_.tile.at_least(kTileCells * size);
    block.sums = buffers_.sums.at_least(lanes * size);
    block.value_max = buffers_.value_max.at_least(pairs * 32);
  }

  // The union of the rows' cells, and for each row and tile of it the bits of what the row sees.
  void list_cells(const Rows& rows, AttentionBlock& block) {
    const auto count = static_cast<std::size_t>(rows.count);
    std::uint64_t* bits = buffers_.bits.at_least(std::max<std::size_t>(2, count) * words_);
    std::uint64_t* united = buffers_.united.at_least(words_);
    std::fill_n(united, words_, 0);
    for (std::size_t row = 0; row < count; ++row) {
      kernels_.visible_bits(mask_of(rows.stream, rows.first + static_cast<int>(row)), call_.cells,
                            bits + row * words_);
      for (std::size_t word = 0; word < words_; ++word) united[word] |= bits[row * words_ + word];
    }
    std::int32_t* cells =
        buffers_.cells.at_least(static_cast<std::size_t>(call_.cells) + kTileCells);
    int listed = 0;
    for (std::size_t word = 0; word < words_; ++word) {
      for (std::uint64_t left = united[word]; left != 0; left &= left - 1) {
        cells[listed++] = static_cast<std::int32_t>(word * 64) + std::countr_zero(left);
      }
    }
    block.tiles = (listed + kTileCells - 1) / kTileCells;
    for (int i = listed; i < block.tiles * kTileCells; ++i) cells[i] = cells[listed - 1];
    block.cells = cells;
    const auto tiles = static_cast<std::size_t>(block.tiles);
    std::uint16_t* visible = buffers_.visible.at_least(count * (tiles + 8));
    for (std::size_t row = 0; row < count; ++row) {
      pick_bits(bits + row * words_, united, visible + row * tiles, tiles);
    }
    block.visible = visible;
  }

  // The row's bits at the places of the union's, packed.
  void pick_bits(const std::uint64_t* row, const std::uint64_t* united, std::uint16_t* visible,
                 std::size_t tiles) const {
    std::fill_n(visible, tiles, std::uint16_t{0});
    std::size_t at = 0;
    for (std::size_t word = 0; word < words_; ++word) {
      const std::uint64_t all = united[word];
      const int count = std::popcount(all);
      std::uint64_t packed = 0;
      if (row[word] == all) {
        packed = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
      } else if (row[word] != 0) {
        int place = 0;
        for (std::uint64_t left = all; left != 0; left &= left - 1, ++place) {
          packed |= (row[word] >> std::countr_zero(left) & 1) << place;
        }
      }
      // Four tiles a word at most, and a shifted fifth.
      for (int done = 0; done < count;) {
        const int shift = static_cast<int>(at % kTileCells);
        const int taken = std::min(count - done, kTileCells - shift);
        visible[at / kTileCells] |= static_cast<std::uint16_t>((packed >> done) << shift);
        done += taken;
        at += static_cast<std::size_t>(taken);
      }
    }
  }

  const AttentionKernels& kernels_;
  const AttentionCall& call_;
  AttentionScratch::Buffers& buffers_;
  const std::size_t words_;
  const int group_;
  std::int64_t largest_ = 1;  // of the blocks: scores of one query head
};

bool attention_supports(int size, int heads, int kv_heads) {
  return size >= 64 && size <= 256 && size % 16 == 0 && kv_heads > 0 && heads % kv_heads == 0;
}

bool has_attention(InstructionSet set) { return kernels_of(set) != nullptr; }

void attend(InstructionSet set, const AttentionCall& call, std::atomic<int>& next,
            AttentionScratch& scratch) {
  AttentionWork(*kernels_of(set), call, scratch).run(next);
}

}  // namespace flotilla::kernels
