#include "engine/ggml_groups.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"

namespace flotilla::engine {
namespace {

// A node that another one computes says so in an unused parameter: a graph that libllama uses again
// comes without the flags that were cleared, and they are set before it is planned anew.
constexpr std::size_t kMarkAt = GGML_MAX_OP_PARAMS / sizeof(std::int32_t) - 1;
constexpr std::int32_t kJoined = 2;

// Graphs of some thousand nodes are planned before the first leader's place is needed again.
constexpr std::size_t kGroups = 16 << 10;

bool is_joined(const ggml_tensor* node) { return node->op_params[kMarkAt] == kJoined; }

bool is_nothing(const ggml_tensor* node) {
  return node->op == GGML_OP_NONE || node->op == GGML_OP_RESHAPE || node->op == GGML_OP_VIEW ||
         node->op == GGML_OP_PERMUTE || node->op == GGML_OP_TRANSPOSE;
}

bool overlap(const ggml_tensor* a, const ggml_tensor* b) {
  const auto* a_data = static_cast<const char*>(a->data);
  const auto* b_data = static_cast<const char*>(b->data);
  return a_data < b_data + ggml_nbytes(b) && b_data < a_data + ggml_nbytes(a);
}

bool reads(const ggml_tensor* node, const ggml_tensor* memory) {
  return std::ranges::any_of(node->src, [memory](const ggml_tensor* source) {
    return source != nullptr && overlap(source, memory);
  });
}

bool is_dense_f32(const ggml_tensor* tensor) {
  return tensor->type == GGML_TYPE_F32 && ggml_is_contiguous(tensor);
}

// x * sigmoid(x) times another: the one gated unit that finish does.
bool is_silu_gate(const ggml_tensor* node) {
  return node->op == GGML_OP_GLU && ggml_get_glu_op(node) == GGML_GLU_OP_SWIGLU &&
         node->src[1] != nullptr;
}

const ggml_tensor* root_of(const ggml_tensor* tensor) {
  while (tensor->view_src != nullptr) tensor = tensor->view_src;
  return tensor;
}

// Taken out of the pass; back in it.
void take_out(ggml_tensor* node) {
  node->op_params[kMarkAt] = kJoined;
  node->flags &= ~GGML_TENSOR_FLAG_COMPUTE;
}

void put_back(ggml_tensor* node) {
  node->op_params[kMarkAt] = 0;
  node->flags |= GGML_TENSOR_FLAG_COMPUTE;
}

}  // namespace

bool is_weighed_norm(const ggml_tensor* node) {
  return node->op == GGML_OP_MUL && node->extra != nullptr && group_of(node)->norm != nullptr;
}

NodeGroup* group_of(const ggml_tensor* node) { return static_cast<NodeGroup*>(node->extra); }

void GroupPlanner::begin() {
  history_.clear();
  products_ = nullptr;
  stock_ = nullptr;
  graph_ += 1;
}

void GroupPlanner::add(ggml_tensor* node, Kind kind) {
  node->extra = nullptr;
  if (is_joined(node)) put_back(node);
  if (!is_nothing(node) && (node->flags & GGML_TENSOR_FLAG_COMPUTE) != 0) {
    if (kind == Kind::Product) {
      add_product(node);
    } else if (kind == Kind::Attention) {
      lead(node);
    } else if (node->op == GGML_OP_ADD || is_silu_gate(node)) {
      add_finish(node);
    } else if (node->op == GGML_OP_ROPE || node->op == GGML_OP_SET_ROWS) {
      add_stock(node);
    } else if (node->op == GGML_OP_MUL) {
      add_weighed_norm(node);
    }
  }
  release_what_is_read(node);
  if (history_.size() == kHistory) history_.erase(history_.begin());
  history_.push_back(node);
}

NodeGroup& GroupPlanner::lead(ggml_tensor* node) {
  if (!groups_) groups_ = std::make_unique<NodeGroup[]>(kGroups);
  NodeGroup& group = groups_[next_++ % kGroups];
  group.count = 0;
  group.finish = nullptr;
  group.norm = nullptr;
  group.taken_by = nullptr;
  group.graph = graph_;
  for (std::atomic<int>& taken : group.taken) taken.store(0, std::memory_order::relaxed);
  group.members[group.count++] = node;
  node->extra = &group;
  return group;
}

void GroupPlanner::join(NodeGroup& group, ggml_tensor* node) {
  node->extra = &group;
  take_out(node);
}

// Whether the node can be computed where the group's leader is: what lies between neither makes
// what it reads, nor reads or writes where its result goes. A node that joined a group lies where
// that group's leader is.
bool GroupPlanner::may_move(const NodeGroup& group, const ggml_tensor* node) const {
  const auto leader = std::ranges::find(history_, group.members[0]);
  if (leader == history_.end()) return false;
  return std::none_of(leader + 1, history_.end(), [&](const ggml_tensor* other) {
    if (is_nothing(other)) return false;
    if (is_joined(other)) {
      const auto at = std::find(leader + 1, history_.end(), group_of(other)->members[0]);
      if (at == history_.end()) return false;
    }
    return overlap(node, other) || reads(node, other) || reads(other, node);
  });
}

// Whether the node's result is apart from all that the members read and write: threads are at
// different members at one time. A finish may write over what it reads, element by element.
bool GroupPlanner::is_apart(const NodeGroup& group, const ggml_tensor* node, bool finish) const {
  if (group.norm != nullptr && overlap(group_of(group.norm)->norm->src[0], node)) return false;
  return std::ranges::none_of(group.nodes(), [&](const ggml_tensor* member) {
    const bool in_place =
        finish && member->data == node->data && ggml_nbytes(member) == ggml_nbytes(node);
    return reads(member, node) || (overlap(member, node) && !in_place);
  });
}

void GroupPlanner::add_product(ggml_tensor* node) {
  NodeGroup* group = products_;
  if (group != nullptr && group->finish == nullptr && group->count < NodeGroup::kMost &&
      group->members[0]->src[1] == node->src[1] && may_move(*group, node) &&
      is_apart(*group, node, false)) {
    group->members[group->count++] = node;
    join(*group, node);
    return;
  }
  products_ = &lead(node);
  take_norm(*products_);
}

// A norm and the product with its weights, one after the other, are one node of ours, whatever the
// shape and the memory: so a model's norms have the same bits in every pass.
void GroupPlanner::add_weighed_norm(ggml_tensor* node) {
  if (history_.empty()) return;
  ggml_tensor* norm = history_.back();
  if (norm->op != GGML_OP_RMS_NORM || (norm->flags & GGML_TENSOR_FLAG_OUTPUT) != 0) return;
  if (node->src[0] != norm || node->src[1] == norm) return;
  const ggml_tensor* weight = node->src[1];
  const ggml_tensor* source = norm->src[0];
  if (weight->op != GGML_OP_NONE || !is_dense_f32(weight)) return;
  if (ggml_nrows(weight) != 1 || weight->ne[0] != node->ne[0]) return;
  if (!is_dense_f32(node) || source->type != GGML_TYPE_F32 || source->nb[0] != sizeof(float))
    return;
  NodeGroup& group = lead(node);
  group.norm = norm;
  join(group, norm);
}

// The products' input, if it is a weighed norm, need not be written: each thread computes what it
// quantises. What the norm reads must still be there then.
void GroupPlanner::take_norm(NodeGroup& group) {
  ggml_tensor* weighed = group.members[0]->src[1];
  const auto at = std::ranges::find(history_, weighed);
  if (at == history_.end() || !is_weighed_norm(weighed)) return;
  if ((weighed->flags & GGML_TENSOR_FLAG_OUTPUT) != 0) return;
  const ggml_tensor* source = group_of(weighed)->norm->src[0];
  const bool kept = std::none_of(at + 1, history_.end(), [source](const ggml_tensor* other) {
    return !is_nothing(other) && overlap(other, source);
  });
  if (!kept || overlap(group.members[0], source)) return;
  group.norm = weighed;
  group_of(weighed)->taken_by = &group;
  take_out(weighed);
}

// A norm that is read by another node than it was taken out for is computed after all.
void GroupPlanner::release_what_is_read(const ggml_tensor* node) const {
  for (const ggml_tensor* each : node->src) {
    if (each == nullptr) continue;
    ggml_tensor* source = const_cast<ggml_tensor*>(root_of(each));
    if (source->op != GGML_OP_RMS_NORM && source->op != GGML_OP_MUL) continue;
    if (!is_joined(source)) continue;
    NodeGroup& weighed = *group_of(source);
    CHECK(weighed.graph == graph_);  // it was not computed, and its graph is gone
    if (source == weighed.norm && node == weighed.members[0]) continue;
    NodeGroup* products = weighed.taken_by;
    if (source != weighed.norm && group_of(node) == products) continue;
    if (products != nullptr) {
      products->norm = nullptr;
      weighed.taken_by = nullptr;
      put_back(weighed.members[0]);
    }
    if (source != weighed.norm) continue;
    weighed.norm = nullptr;
    weighed.members[0]->extra = nullptr;
    put_back(source);
  }
}

void GroupPlanner::add_finish(ggml_tensor* node) {
  NodeGroup* group = products_;
  if (group == nullptr || group->finish != nullptr || !is_dense_f32(node)) return;
  const ggml_tensor* a = node->src[0];
  const ggml_tensor* b = node->src[1];
  if (!ggml_are_same_shape(a, b) || !ggml_are_same_shape(a, node)) return;
  if (!is_dense_f32(a) || !is_dense_f32(b)) return;
  const auto has = [group](const ggml_tensor* tensor) {
    return std::ranges::find(group->nodes(), tensor) != group->nodes().end();
  };
  const bool fits = node->op == GGML_OP_ADD ? group->count == 1 && has(a) != has(b)
                                            : group->count == 2 && has(a) && has(b) && a != b;
  if (!fits || !may_move(*group, node) || !is_apart(*group, node, true)) return;
  // The operand from outside: the same elements or none.
  for (const ggml_tensor* operand : {a, b}) {
    if (overlap(operand, node) && operand->data != node->data) return;
  }
  group->finish = node;
  join(*group, node);
}

void GroupPlanner::add_stock(ggml_tensor* node) {
  NodeGroup* group = stock_;
  if (group != nullptr && group->count < NodeGroup::kMost && group->members[0]->op == node->op &&
      may_move(*group, node)) {
    // In place is common: it reads and writes its own elements only.
    const bool apart = std::ranges::none_of(group->nodes(), [node](const ggml_tensor* member) {
      return overlap(member, node) || reads(member, node) || reads(node, member);
    });
    if (apart) {
      group->members[group->count++] = node;
      join(*group, node);
      return;
    }
  }
  stock_ = &lead(node);
}

}  // namespace flotilla::engine
