#include "engine/ggml_hook.h"

#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <traits.h>
#include <utility>

#include <fmt/format.h>
#include <ggml-backend-impl.h>
#include <ggml-cpu-impl.h>
#include <ggml-cpu.h>

#include "base/check.h"
#include "base/log.h"
#include "engine/ggml_groups.h"
#include "engine/ggml_nodes.h"
#include "kernels/instruction_set.h"
#include "kernels/matmul.h"
#include "platform/huge_pages.h"

namespace flotilla::engine {
namespace {

// What this thread asked for by WithKernels. ggml asks about tensors and plans graphs on the thread
// that loads or decodes.
struct Mode {
  bool on = false;
  int threads = 1;
  KernelUse* use = nullptr;
};
thread_local Mode mode;

ggml_backend_buffer_type_t our_buffer_type();

bool is_ours(const ggml_tensor* weight) {
  return weight->buffer != nullptr && weight->buffer->buft == our_buffer_type();
}

void count_stock(int KernelUse::* counter, const ggml_tensor* node, std::string_view reason) {
  if (mode.use == nullptr) return;
  mode.use->*counter += 1;
  if (!mode.use->stock_reason.empty()) return;
  mode.use->stock_reason = fmt::format("{} {}: {}", ggml_op_name(node->op), node->name, reason);
}

// Nobody tells where a graph begins. Each is computed as soon as it is planned, and the thread that
// plans is the first of those that compute: the node after a computed one begins another graph.
thread_local bool computed = true;

void note_computed(const ggml_compute_params& params) {
  if (params.ith == 0) computed = true;
}

void plan_groups(const ggml_tensor* node, GroupPlanner::Kind kind) {
  thread_local GroupPlanner planner;
  if (std::exchange(computed, false)) planner.begin();
  if (mode.on) planner.add(const_cast<ggml_tensor*>(node), kind);
}

class ProductTraits final : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int, const ggml_tensor* node, size_t& size) override {
    if (node->op != GGML_OP_MUL_MAT) return false;
    if (mode.use != nullptr) mode.use->our_products += 1;
    plan_groups(node, GroupPlanner::Kind::Product);
    size = plan_product(node);
    return true;
  }
  bool compute_forward(ggml_compute_params* params, ggml_tensor* node) override {
    note_computed(*params);
    if (node->op != GGML_OP_MUL_MAT) return false;
    compute_product(*params, node);
    return true;
  }
};

class AttentionTraits final : public ggml::cpu::tensor_traits {
 public:
  // False leaves the work size to ggml, which may be asked to compute the node after all.
  bool work_size(int, const ggml_tensor* node, size_t&) override {
    const std::string_view reason = mode.on ? why_stock_attention(node) : "not asked for";
    plan_groups(node, reason.empty() ? GroupPlanner::Kind::Attention : GroupPlanner::Kind::Stock);
    mark_attention(const_cast<ggml_tensor*>(node), reason.empty());
    if (!reason.empty()) {
      count_stock(&KernelUse::stock_attention, node, reason);
    } else if (mode.use != nullptr) {
      mode.use->our_attention += 1;
    }
    return false;
  }
  bool compute_forward(ggml_compute_params* params, ggml_tensor* node) override {
    note_computed(*params);
    if (!is_marked_attention(node)) return false;
    compute_attention(*params, node);
    return true;
  }
};

// Nodes that ggml computes, watched while a graph is planned: they may join a group, or lead one.
class StockTraits final : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int, const ggml_tensor* node, size_t&) override {
    plan_groups(node, GroupPlanner::Kind::Stock);
    return false;
  }
  bool compute_forward(ggml_compute_params* params, ggml_tensor* node) override {
    note_computed(*params);
    if (is_weighed_norm(node)) {
      compute_weighed_norm(*params, node);
      return true;
    }
    if (node->op != GGML_OP_ROPE && node->op != GGML_OP_SET_ROWS) return false;
    const NodeGroup* group = group_of(node);
    if (group == nullptr || group->count < 2) return false;
    compute_stock_group(*params, *group);
    return true;
  }
};

// Computes nothing: counts products that ggml computes.
class StockProductTraits final : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int, const ggml_tensor* node, size_t&) override {
    plan_groups(node, GroupPlanner::Kind::Stock);
    count_stock(&KernelUse::stock_products, node,
                fmt::format("{} weights of {} x {}", ggml_type_name(node->src[0]->type),
                            node->src[0]->ne[0], node->src[0]->ne[1]));
    return false;
  }
  bool compute_forward(ggml_compute_params* params, ggml_tensor*) override {
    note_computed(*params);
    return false;
  }
};

ProductTraits product_traits;
AttentionTraits attention_traits;
StockTraits stock_traits;
StockProductTraits stock_product_traits;

class OurBufferType final : public ggml::cpu::extra_buffer_type {
 public:
  // Asked by the loader with an empty buffer (`extra` is not set then), by the scheduler with ours.
  bool supports_op(ggml_backend_dev_t, const ggml_tensor* node) override {
    if (node->op != GGML_OP_MUL_MAT || !is_ours(node->src[0])) return false;
    if (node->src[0]->extra == nullptr && !mode.on) return false;
    if (!packed_form(node->src[0]) || node->src[1]->type != GGML_TYPE_F32) return false;
    return node->src[1]->buffer == nullptr || ggml_backend_buft_is_host(node->src[1]->buffer->buft);
  }
  ggml::cpu::tensor_traits* get_tensor_traits(const ggml_tensor* node) override {
    if (node->op == GGML_OP_FLASH_ATTN_EXT) return &attention_traits;
    if (node->op != GGML_OP_MUL_MAT && node->op != GGML_OP_MUL_MAT_ID) return &stock_traits;
    if (is_ours(node->src[0])) return static_cast<ProductTraits*>(node->src[0]->extra);
    return &stock_product_traits;
  }
};

ggml_status init_tensor(ggml_backend_buffer_t, ggml_tensor* tensor) {
  tensor->extra = packed_form(tensor) ? &product_traits : nullptr;
  return GGML_STATUS_SUCCESS;
}

void set_tensor(ggml_backend_buffer_t, ggml_tensor* tensor, const void* data, size_t offset,
                size_t size) {
  CHECK(offset == 0 && size == ggml_nbytes(tensor));
  const auto matrix = packed_form(tensor);
  CHECK(matrix.has_value());
  kernels::pack_matrix(*matrix, static_cast<std::byte*>(tensor->data),
                       static_cast<const std::byte*>(data), mode.threads);
}

const char* buffer_name(ggml_backend_buffer_type_t) { return "CPU_FLOTILLA"; }

// ggml's own allocation of memory for the CPU: what keys, values and intermediate results lie in.
ggml_backend_buffer_t (*allocate_plain)(ggml_backend_buffer_type_t, size_t) = nullptr;

void clear_buffer(ggml_backend_buffer_t buffer, std::uint8_t value) {
  void* memory = ggml_backend_buffer_get_base(buffer);
  if (value == 0) {
    platform::zero_pages(memory, buffer->size);
  } else {
    std::memset(memory, value, buffer->size);
  }
}

ggml_backend_buffer_t allocate_huge(ggml_backend_buffer_type_t type, size_t size) {
  ggml_backend_buffer_t buffer = allocate_plain(type, size);
  if (buffer != nullptr) {
    platform::prefer_huge_pages(ggml_backend_buffer_get_base(buffer), size);
    buffer->iface.clear = clear_buffer;
  }
  return buffer;
}

ggml_backend_buffer_t allocate(ggml_backend_buffer_type_t type, size_t size) {
  ggml_backend_buffer_t buffer =
      ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
  if (buffer == nullptr) return nullptr;
  buffer->buft = type;
  buffer->iface.init_tensor = init_tensor;
  buffer->iface.set_tensor = set_tensor;
  buffer->iface.get_tensor = nullptr;
  buffer->iface.cpy_tensor = nullptr;
  return buffer;
}

size_t alignment(ggml_backend_buffer_type_t) { return 64; }

size_t allocation_size(ggml_backend_buffer_type_t, const ggml_tensor* tensor) {
  const auto matrix = packed_form(tensor);
  return matrix ? matrix->bytes() : ggml_nbytes(tensor);
}

ggml_backend_buffer_type_t our_buffer_type() {
  static OurBufferType ours;
  static ggml_backend_buffer_type type = {
      .iface = {.get_name = buffer_name,
                .alloc_buffer = allocate,
                .get_alignment = alignment,
                .get_max_size = nullptr,
                .get_alloc_size = allocation_size,
                .is_host = nullptr},
      .device = ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0),
      .context = &ours};
  return &type;
}

}  // namespace

std::string kernels_name() {
  return std::string(kernels::name_of(kernels::best_instruction_set()));
}

std::string register_kernels() {
  static std::once_flag once;
  static std::string reason;
  std::call_once(once, [] {
    allocate_plain =
        std::exchange(ggml_backend_cpu_buffer_type()->iface.alloc_buffer, allocate_huge);
    const auto set = kernels::best_instruction_set();
    if (ggml_cpu_has_amx_int8() != 0) {
      reason = "this build uses AMX, which is faster";
    } else if (kernels::matmul_kernels(set) == nullptr) {
      reason = "this processor has no instruction set that they are written for";
    } else {
      auto& types = ggml_backend_cpu_get_extra_buffer_types();
      types.insert(types.begin(), our_buffer_type());
    }
  });
  return reason;
}

WithKernels::WithKernels(bool on, int threads, KernelUse* use) {
  CHECK(!mode.on && mode.use == nullptr);
  mode = {.on = on, .threads = threads, .use = use};
  computed = true;
}

WithKernels::~WithKernels() { mode = {}; }

}  // namespace flotilla::engine
