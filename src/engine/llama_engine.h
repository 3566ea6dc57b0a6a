#pragma once

#include "engine/engine.h"

namespace flotilla::engine {

// Loads a GGUF with llama.cpp. NotFound, InvalidArgument (not a GGUF, broken, context out of
// range), ResourceExhausted (does not fit). One load at a time in a process: why one
// fails is in llama.cpp's log, which is global. Blocks for as long as the files take to read.
Result<LoadedModel> load_llama(const LoadOptions& options, const LoadProgress& progress);

}  // namespace flotilla::engine
