#pragma once

#include <string>

#include "engine/chat_template.h"
#include "engine/test_model.h"

namespace flotilla::engine {

// A template of the sample model's vocabulary.
inline Result<std::shared_ptr<const ChatTemplate>> with_template(const std::string& source) {
  static const ModelHandle model = [] {
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    (void)sample_model();
    return ModelHandle(llama_model_load_from_file(sample_model_file().c_str(), params),
                       llama_model_free);
  }();
  return make_llama_chat_template(model, source);
}

}  // namespace flotilla::engine
