#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/instruction_set.h"

namespace flotilla::kernels {

// Softmax attention over a cache of f16 keys and values. All strides in elements.
//   query, output  f32 [row][head][size]      mask  f16 [row][cell]: -inf hides, all else is seen
//   key, value     f16 [stream][cell][kv head][size]
// A row sees the cells of its stream: rows [0, stream_rows) belong to stream 0, and so on. Head h
// reads kv head h / (heads / kv_heads).
struct AttentionCall {
  const float* query = nullptr;
  std::ptrdiff_t query_row = 0;
  std::ptrdiff_t query_head = 0;
  std::ptrdiff_t query_stream = 0;
  const std::uint16_t* key = nullptr;
  std::ptrdiff_t key_cell = 0;
  std::ptrdiff_t key_head = 0;
  std::ptrdiff_t key_stream = 0;
  const std::uint16_t* value = nullptr;
  std::ptrdiff_t value_cell = 0;
  std::ptrdiff_t value_head = 0;
  std::ptrdiff_t value_stream = 0;
  const std::uint16_t* mask = nullptr;
  std::ptrdiff_t mask_row = 0;
  std::ptrdiff_t mask_stream = 0;
  float* output = nullptr;  // [stream][row][head][size], dense
  int streams = 1;
  int stream_rows = 0;
  int cells = 0;
  int heads = 0;
  int kv_heads = 0;
  int size = 0;  // of a head
  float scale = 1;
  float soft_cap = 0;  // scores become soft_cap * tanh(score / soft_cap); 0 = as they are
  int threads = 1;     // that share the call
};

// What kernels can do: sizes 64-256 in steps of 16.
bool attention_supports(int size, int heads, int kv_heads);

// One thread's memory, kept between calls.
class AttentionScratch {
 public:
  AttentionScratch();
  ~AttentionScratch();
  AttentionScratch(const AttentionScratch&) = delete;
  AttentionScratch& operator=(const AttentionScratch&) = delete;

 private:
  friend class AttentionWork;
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
};

// Every thread that computes a call takes the next piece of work from `next`, 0 at first, until
// none is left. What is promised: a row's bits depend on its query and on the keys and values that
// it sees, and on nothing else: neither on the cells' order or place, nor on other rows, streams,
// masks or the number of threads. How, is in attention_avx512.cpp.
void attend(InstructionSet set, const AttentionCall& call, std::atomic<int>& next,
            AttentionScratch& scratch);

bool has_attention(InstructionSet set);

}  // namespace flotilla::kernels
