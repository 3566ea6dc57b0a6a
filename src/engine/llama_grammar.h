#pragma once

#include <memory>

#include "engine/grammar.h"
#include "engine/llama_handles.h"

namespace flotilla::engine {

std::shared_ptr<const GrammarMaker> make_llama_grammars(const ModelHandle& model);

}  // namespace flotilla::engine
