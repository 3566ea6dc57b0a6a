#pragma once

#include "engine/engine.h"
#include "engine/gguf_facts.h"
#include "engine/llama_handles.h"

namespace flotilla::engine {

// The weights in memory. Reading the files counts for most of the progress, placing the tensors
// for the rest. Cancelled: `progress` said stop.
Result<ModelHandle> load_weights(const GgufFacts& facts, const LoadOptions& options,
                                 const LoadProgress& progress);

// Whether a load with these options uses our kernels, as far as they go.
bool uses_our_kernels(const LoadOptions& options);

}  // namespace flotilla::engine
