#pragma once

#include <memory>

#include "engine/engine.h"
#include "engine/llama_handles.h"

namespace flotilla::engine {

// The tokenizer of a model file.
std::shared_ptr<const Tokenizer> make_llama_tokenizer(ModelHandle model);

}  // namespace flotilla::engine
