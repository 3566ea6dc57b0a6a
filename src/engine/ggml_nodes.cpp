#include "engine/ggml_nodes.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ops.h>
#include <vector>

#include <ggml-cpu-impl.h>

#include "engine/ggml_groups.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/row_operations.h"

namespace flotilla::engine {
namespace {

using kernels::Activations;
using kernels::InstructionSet;

InstructionSet instruction_set() {
  static const InstructionSet set = kernels::best_instruction_set();
  return set;
}

std::optional<kernels::WeightType> weight_type(ggml_type type) {
  switch (type) {
    case GGML_TYPE_Q4_0: return kernels::WeightType::Q4_0;
    case GGML_TYPE_Q4_1: return kernels::WeightType::Q4_1;
    case GGML_TYPE_Q8_0: return kernels::WeightType::Q8_0;
    case GGML_TYPE_Q4_K: return kernels::WeightType::Q4_K;
    case GGML_TYPE_Q6_K: return kernels::WeightType::Q6_K;
    default: return {};
  }
}

std::byte* aligned(void* memory) {
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  return static_cast<std::byte*>(memory) + (64 - at % 64) % 64;
}

// Up to this many values every thread quantises all columns for itself: no barrier, and products
// of the same input (query, key, value; gate, up) find them done.
constexpr std::int64_t kPrivateValues = 64 << 10;

// Counts plans, so that a thread knows its private columns from those of another pass, whose
// tensors may have the same addresses.
std::atomic<std::uint64_t> plans{0};

struct PrivateColumns {
  const ggml_tensor* source = nullptr;
  const void* data = nullptr;
  std::uint64_t plan = 0;
  std::vector<std::byte> memory;
  Activations activations;
};

// A norm and its weights, row by row.
struct WeighedNorm {
  explicit WeighedNorm(const ggml_tensor* node)
      : source(group_of(node)->norm->src[0]),
        weight(static_cast<const float*>(node->src[1]->data)) {
    std::memcpy(&epsilon, group_of(node)->norm->op_params, sizeof(epsilon));
  }
  void row(const float* from, float* to) const {
    kernels::row_kernels(instruction_set())
        ->rms_norm(from, weight, epsilon, to, static_cast<int>(source->ne[0]));
  }

  const ggml_tensor* source;
  const float* weight;
  float epsilon = 0;
};

const float* row_of(const ggml_tensor* tensor, std::int64_t row) {
  const std::int64_t plane = row / tensor->ne[1];
  const auto at = static_cast<std::size_t>(row % tensor->ne[1]) * tensor->nb[1] +
                  static_cast<std::size_t>(plane % tensor->ne[2]) * tensor->nb[2] +
                  static_cast<std::size_t>(plane / tensor->ne[2]) * tensor->nb[3];
  return reinterpret_cast<const float*>(static_cast<const char*>(tensor->data) + at);
}

// Columns [first, last) of a tensor whose rows may lie in several planes.
void quantize(const ggml_tensor* source, const Activations& to, std::int64_t first,
              std::int64_t last) {
  const auto& kernels = *kernels::matmul_kernels(instruction_set());
  const auto stride = static_cast<std::ptrdiff_t>(source->nb[1] / sizeof(float));
  while (first < last) {
    const std::int64_t row = first % source->ne[1];
    const std::int64_t end = std::min(last, first + source->ne[1] - row);
    kernels::quantize_columns(kernels, to, row_of(source, first), stride, static_cast<int>(first),
                              static_cast<int>(end));
    first = end;
  }
}

// Columns [first, last) of a weighed norm that nobody has written.
void quantize_norm(const ggml_tensor* weighed, const Activations& to, std::int64_t first,
                   std::int64_t last) {
  constexpr std::int64_t kTogether = kernels::kTileColumns;
  const auto& kernels = *kernels::matmul_kernels(instruction_set());
  const WeighedNorm norm(weighed);
  thread_local std::vector<float> rows;
  rows.resize(static_cast<std::size_t>(kTogether * to.depth));
  for (; first < last; first += kTogether) {
    const std::int64_t end = std::min(last, first + kTogether);
    for (std::int64_t row = first; row < end; ++row) {
      norm.row(row_of(norm.source, row), rows.data() + (row - first) * to.depth);
    }
    kernels::quantize_columns(kernels, to, rows.data(), to.depth, static_cast<int>(first),
                              static_cast<int>(end));
  }
}

// The input of a group of products.
void quantize_input(const NodeGroup& group, const Activations& to, std::int64_t first,
                    std::int64_t last) {
  if (group.norm != nullptr) {
    quantize_norm(group.norm, to, first, last);
  } else {
    quantize(group.members[0]->src[1], to, first, last);
  }
}

const Activations& private_columns(const NodeGroup& group, int columns, int depth) {
  const ggml_tensor* source = group.members[0]->src[1];
  thread_local PrivateColumns kept;
  const std::uint64_t plan = plans.load(std::memory_order::relaxed);
  if (kept.source != source || kept.data != source->data || kept.plan != plan) {
    const std::size_t bytes = Activations::bytes(columns, depth) + 64;
    if (kept.memory.size() < bytes) kept.memory.resize(bytes);
    kept.activations = Activations::in(aligned(kept.memory.data()), columns, depth);
    quantize_input(group, kept.activations, 0, columns);
    kept.source = source;
    kept.data = source->data;
    kept.plan = plan;
  }
  return kept.activations;
}

constexpr int kMarkAt = GGML_MAX_OP_PARAMS / sizeof(std::int32_t) - 1;

}  // namespace

std::optional<kernels::PackedMatrix> packed_form(const ggml_tensor* weight) {
  const auto type = weight_type(weight->type);
  if (!type || weight->ne[2] != 1 || weight->ne[3] != 1) return {};
  if (weight->ne[0] % kernels::depth_unit(*type) != 0) return {};
  constexpr std::int64_t kMost = 1 << 24;
  if (weight->ne[0] > kMost || weight->ne[1] > kMost) return {};
  return kernels::PackedMatrix{.type = *type,
                               .rows = static_cast<int>(weight->ne[1]),
                               .depth = static_cast<int>(weight->ne[0]),
                               .data = static_cast<const std::byte*>(weight->data)};
}

std::size_t plan_product(const ggml_tensor* node) {
  plans.fetch_add(1, std::memory_order::relaxed);
  return Activations::bytes(static_cast<int>(ggml_nrows(node->src[1])),
                            static_cast<int>(node->src[1]->ne[0])) +
         64;
}

namespace {

// The rows of `finish` that this thread has just computed the operands of.
void compute_finish(const ggml_tensor* finish, int first_row, int last_row) {
  const auto* a = static_cast<const float*>(finish->src[0]->data);
  const auto* b = static_cast<const float*>(finish->src[1]->data);
  auto* to = static_cast<float*>(finish->data);
  const kernels::RowOperation operation = finish->op == GGML_OP_ADD
                                              ? kernels::row_kernels(instruction_set())->add
                                              : kernels::row_kernels(instruction_set())->silu_times;
  const std::int64_t rows = finish->ne[0];
  for (std::int64_t column = 0; column < ggml_nrows(finish); ++column) {
    const std::int64_t at = column * rows + first_row;
    operation(a + at, b + at, to + at, last_row - first_row);
  }
}

// Of the rows of each product in the group, the part piece / pieces.
void compute_piece(const NodeGroup& group, const Activations& activations, int piece, int pieces) {
  for (const ggml_tensor* product : group.nodes()) {
    const kernels::PackedMatrix weights = *packed_form(product->src[0]);
    const int groups = kernels::groups_of(weights.rows);
    const int first = groups * piece / pieces;
    const int last = groups * (piece + 1) / pieces;
    kernels::matmul_kernels(instruction_set())
        ->multiply(weights, activations, first, last,
                   {.data = static_cast<float*>(product->data), .column_stride = weights.rows});
    if (product == group.nodes().back() && group.finish != nullptr) {
      compute_finish(group.finish, first * kernels::kGroupRows,
                     std::min(last * kernels::kGroupRows, weights.rows));
    }
  }
}

constexpr int kPiecesPerThread = 8;

}  // namespace

void compute_product(const ggml_compute_params& params, ggml_tensor* node) {
  const ggml_tensor* source = node->src[1];
  const kernels::PackedMatrix matrix = *packed_form(node->src[0]);
  const auto columns = static_cast<int>(ggml_nrows(source));
  NodeGroup& group = *group_of(node);
  Activations activations;
  if (std::int64_t{columns} * matrix.depth <= kPrivateValues) {
    activations = private_columns(group, columns, matrix.depth);
  } else {
    activations = Activations::in(aligned(params.wdata), columns, matrix.depth);
    quantize_input(group, activations, std::int64_t{columns} * params.ith / params.nth,
                   std::int64_t{columns} * (params.ith + 1) / params.nth);
    ggml_barrier(params.threadpool);
  }
  const int most = kernels::groups_of(static_cast<int>(group.members[0]->ne[0]));
  const int lanes = std::min(params.nth, NodeGroup::kLanes);
  const int pieces = std::min(most, lanes == 1 ? 1 : kPiecesPerThread * lanes);
  // A thread begins with its own lane, so that it reads weights one after the other, and what was
  // prefetched at a piece's end is what the next one begins with. Then it helps the others: a
  // thread that the machine slows down is not waited for.
  for (int other = 0; other < lanes; ++other) {
    const int lane = (params.ith + other) % lanes;
    const int first = pieces * lane / lanes;
    const int last = pieces * (lane + 1) / lanes;
    for (;;) {
      const int piece = first + group.taken[static_cast<std::size_t>(lane)].fetch_add(
                                    1, std::memory_order::relaxed);
      if (piece >= last) break;
      compute_piece(group, activations, piece, pieces);
    }
  }
}

void compute_weighed_norm(const ggml_compute_params& params, ggml_tensor* node) {
  const WeighedNorm norm(node);
  for (std::int64_t row = params.ith; row < ggml_nrows(node); row += params.nth) {
    norm.row(row_of(norm.source, row), static_cast<float*>(node->data) + row * node->ne[0]);
  }
}

void compute_stock_group(const ggml_compute_params& params, const NodeGroup& group) {
  for (ggml_tensor* node : group.nodes()) {
    if (node->op == GGML_OP_ROPE) {
      ggml_compute_forward_rope(&params, node);
    } else {
      ggml_compute_forward_set_rows(&params, node);
    }
  }
}

std::string_view why_stock_attention(const ggml_tensor* node) {
  const ggml_tensor* query = node->src[0];
  const ggml_tensor* key = node->src[1];
  const ggml_tensor* value = node->src[2];
  const ggml_tensor* mask = node->src[3];
  float max_bias = 0;
  std::memcpy(&max_bias, node->op_params + 1, sizeof(max_bias));
  if (!kernels::has_attention(instruction_set())) return "no kernel for this processor";
  if (query->type != GGML_TYPE_F32 || key->type != GGML_TYPE_F16 || value->type != GGML_TYPE_F16) {
    return "keys and values are not f16";
  }
  if (node->src[4] != nullptr) return "attention sinks";
  if (max_bias != 0) return "ALiBi";
  if (mask == nullptr || mask->type != GGML_TYPE_F16 || mask->ne[2] != 1) return "its mask";
  if (key->ne[0] != value->ne[0] || query->ne[0] != key->ne[0] ||
      !kernels::attention_supports(static_cast<int>(key->ne[0]), static_cast<int>(query->ne[2]),
                                   static_cast<int>(key->ne[2]))) {
    return "its head size";
  }
  if (key->ne[2] != value->ne[2] || key->ne[3] != query->ne[3] || value->ne[3] != query->ne[3] ||
      (mask->ne[3] != 1 && mask->ne[3] != query->ne[3]) || mask->ne[1] < query->ne[1]) {
    return "its shape";
  }
  if (key->nb[0] != 2 || value->nb[0] != 2 || query->nb[0] != 4 || !ggml_is_contiguous(node)) {
    return "its memory layout";
  }
  return {};
}

void mark_attention(ggml_tensor* node, bool ours) { node->op_params[kMarkAt] = ours ? 1 : 0; }

bool is_marked_attention(const ggml_tensor* node) { return node->op_params[kMarkAt] == 1; }

void compute_attention(const ggml_compute_params& params, ggml_tensor* node) {
  const ggml_tensor* query = node->src[0];
  const ggml_tensor* key = node->src[1];
  const ggml_tensor* value = node->src[2];
  const ggml_tensor* mask = node->src[3];
  const auto stride = [](const ggml_tensor* tensor, int dimension) {
    return static_cast<std::ptrdiff_t>(tensor->nb[dimension] / ggml_type_size(tensor->type));
  };
  kernels::AttentionCall call;
  call.query = static_cast<const float*>(query->data);
  call.query_row = stride(query, 1);
  call.query_head = stride(query, 2);
  call.query_stream = stride(query, 3);
  call.key = static_cast<const std::uint16_t*>(key->data);
  call.key_cell = stride(key, 1);
  call.key_head = stride(key, 2);
  call.key_stream = stride(key, 3);
  call.value = static_cast<const std::uint16_t*>(value->data);
  call.value_cell = stride(value, 1);
  call.value_head = stride(value, 2);
  call.value_stream = stride(value, 3);
  call.mask = static_cast<const std::uint16_t*>(mask->data);
  call.mask_row = stride(mask, 1);
  call.mask_stream = mask->ne[3] == 1 ? 0 : stride(mask, 3);
  call.output = static_cast<float*>(node->data);
  call.streams = static_cast<int>(query->ne[3]);
  call.stream_rows = static_cast<int>(query->ne[1]);
  call.cells = static_cast<int>(key->ne[1]);
  call.heads = static_cast<int>(query->ne[2]);
  call.kv_heads = static_cast<int>(key->ne[2]);
  call.size = static_cast<int>(key->ne[0]);
  std::memcpy(&call.scale, node->op_params, sizeof(float));
  std::memcpy(&call.soft_cap, node->op_params + 2, sizeof(float));
  call.threads = params.nth;
  thread_local kernels::AttentionScratch scratch;
  kernels::attend(instruction_set(), call, group_of(node)->taken[0], scratch);
}

}  // namespace flotilla::engine
