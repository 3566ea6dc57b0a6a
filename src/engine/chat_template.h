#pragma once

#include <memory>
#include <string>

#include "engine/chat.h"
#include "engine/llama_handles.h"

namespace flotilla::engine {

// The chat template of a model file, or `source` in its place when not empty. InvalidArgument: the
// model has none, or it cannot be parsed.
Result<std::shared_ptr<const ChatTemplate>> make_llama_chat_template(const ModelHandle& model,
                                                                     const std::string& source);

}  // namespace flotilla::engine
