#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <ggml.h>

#include "engine/ggml_groups.h"
#include "kernels/packed_weights.h"

struct ggml_compute_params;

// ggml's nodes as calls of our kernels. For ggml_hook.cpp only.
namespace flotilla::engine {

// The packed form that a weight has, or would have, in our buffers; none where we have no kernel.
std::optional<kernels::PackedMatrix> packed_form(const ggml_tensor* weight);

// Called once a graph and node, before any compute; bytes of work memory.
std::size_t plan_product(const ggml_tensor* node);
// On every thread of the pass, as are all below. The node's group with it.
void compute_product(const ggml_compute_params& params, ggml_tensor* node);

void compute_weighed_norm(const ggml_compute_params& params, ggml_tensor* node);

// ggml's own code for each of the group's nodes.
void compute_stock_group(const ggml_compute_params& params, const NodeGroup& group);

// Empty, or what our attention does not do.
std::string_view why_stock_attention(const ggml_tensor* node);
// The plan's decision, read by all threads: it stands in an unused parameter of the node.
void mark_attention(ggml_tensor* node, bool ours);
bool is_marked_attention(const ggml_tensor* node);
void compute_attention(const ggml_compute_params& params, ggml_tensor* node);

}  // namespace flotilla::engine
