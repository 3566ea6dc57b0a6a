#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "engine/ggml_hook.h"
#include "engine/last_rows.h"
#include "engine/llama_handles.h"

namespace flotilla::engine {

// The shape of a context: how many slots of how many cells, and how they are computed.
struct ContextShape {
  int width = 1;
  std::string width_reason;  // why lower than asked, else empty
  int context = 0;           // of one slot
  int step_tokens_max = 0;
  int threads = 1;
  int least_threads = 1;  // as few as that while other programs hold the cores
  int spin = 0;
  KvType kv_type = KvType::F16;
  bool our_kernels = false;
  int draft_tokens_max = 0;
};

// A context that has computed: its memory is reserved, its weights are in memory.
struct ReadyContext {
  std::unique_ptr<LastRows> rows;  // outlives the context, too
  ThreadPoolHandle threads;        // outlives the context: keep the order
  ContextHandle context;
  ContextShape shape;   // what was really made
  int pass_tokens = 0;  // most tokens that libllama computes at once (n_ubatch)
  bool flash_attention = true;
  bool unified = false;            // one pool of cells for all slots, else a stream of cells each
  bool partial_truncation = true;  // false: a slot can only be emptied as a whole
  std::int64_t kv_bytes = 0;
  KernelUse kernel_use;  // of the passes that warmed it up
};

// InvalidArgument names what is out of range. Before the load, so that a slip costs no minutes;
// `context_trained` 0 = not known yet.
Result<void> check_options(const LoadOptions& options, int context_trained);

// Null: they cannot be started. `spin` as in LoadOptions, but for -1.
ThreadPoolHandle make_threads(int threads, int spin);

// What checked options come to on this model.
ContextShape plan_context(const LoadOptions& options, const llama_model* model);

// Makes the context and computes a few tokens in it. A model that cannot be batched gets width 1,
// with the reason. ResourceExhausted: it does not fit.
Result<ReadyContext> make_context(ContextShape shape, llama_model* model);

// Names all that decides whether saved cells fit: engines of one model and layout share them.
std::string cell_layout_name(const ReadyContext& context);

// Names all that decides the bits of a result: replicas with the same name compute the same.
std::string numerics_name(const ReadyContext& context);

}  // namespace flotilla::engine
