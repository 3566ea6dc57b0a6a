#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ggml.h>

// Nodes that are computed together, so that the threads meet once instead of after each: a barrier
// costs as much as a small product. For ggml_hook.cpp only.
namespace flotilla::engine {

// The first node computes all; the others are taken out of the pass by clearing their compute flag.
struct NodeGroup {
  static constexpr std::size_t kMost = 4;

  std::array<ggml_tensor*, kMost> members{};
  std::size_t count = 0;
  ggml_tensor* finish = nullptr;  // products only: a sum or gated unit of their rows
  // Of a node that weighs a norm: the norm. Of products: the weighed norm that is their input,
  // which each thread computes for itself.
  ggml_tensor* norm = nullptr;
  NodeGroup* taken_by = nullptr;  // of a weighed norm: the products that compute it
  std::uint64_t graph = 0;
  // Pieces of work taken in this pass. Attention: of all. Products: of each lane of threads.
  static constexpr int kLanes = 16;
  std::array<std::atomic<int>, kLanes> taken{};

  std::span<ggml_tensor* const> nodes() const { return {members.data(), count}; }
};

// The group that a planned node leads or has joined; null for a node on its own.
NodeGroup* group_of(const ggml_tensor* node);

// A planned node that is computed as the product of a norm (its first operand) and weights.
bool is_weighed_norm(const ggml_tensor* node);

// Sees the nodes of a graph in order, while it is planned, and forms groups where the order of
// nodes and the places of their results allow it. One a thread.
class GroupPlanner {
 public:
  enum class Kind { Product, Attention, Stock };  // the first two are computed by our kernels
  // Before the first node of a graph: those of the last one may be gone.
  void begin();
  void add(ggml_tensor* node, Kind kind);

 private:
  static constexpr std::size_t kHistory = 24;

  NodeGroup& lead(ggml_tensor* node);
  static void join(NodeGroup& group, ggml_tensor* node);
  void add_product(ggml_tensor* node);
  void add_finish(ggml_tensor* node);
  void add_stock(ggml_tensor* node);
  void add_weighed_norm(ggml_tensor* node);
  void take_norm(NodeGroup& group);
  void release_what_is_read(const ggml_tensor* node) const;
  bool may_move(const NodeGroup& group, const ggml_tensor* node) const;
  bool is_apart(const NodeGroup& group, const ggml_tensor* node, bool finish) const;

  std::vector<ggml_tensor*> history_;    // the last nodes
  std::unique_ptr<NodeGroup[]> groups_;  // a ring: leaders point into it
  std::size_t next_ = 0;
  NodeGroup* products_ = nullptr;  // the last group of products
  NodeGroup* stock_ = nullptr;     // the last group of ggml's own
  std::uint64_t graph_ = 0;
};

}  // namespace flotilla::engine
