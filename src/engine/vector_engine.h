#pragma once

#include "engine/engine.h"
#include "engine/gguf_facts.h"

namespace flotilla::engine {

// A model that was made for vectors of whole texts: it pools over all tokens, or its tokens see
// those behind them. No cells are kept between passes: each chunk is all of a prompt, and a slot
// that was computed counts as full until it is emptied. ggml's own kernels compute it.
Result<LoadedModel> load_vector_engine(const GgufFacts& facts, const LoadOptions& options,
                                       const LoadProgress& progress);

}  // namespace flotilla::engine
