#pragma once

#include <chat.h>
#include <memory>

#include "engine/chat.h"

namespace flotilla::engine {

struct AnswerParserOptions {
  bool one_call = false;  // more than one are left out
  bool thinks = false;    // the prompt ends within thoughts
};

// The parser that llama-common made with a prompt, of what follows that. For this folder's .cpp
// files only.
std::shared_ptr<const AnswerParser> make_answer_parser(const common_chat_params& params,
                                                       const AnswerParserOptions& options);

// Text that no form of answers knows is an answer of this form as it is: no parser is needed.
bool shows_as_written(const common_chat_params& params);

}  // namespace flotilla::engine
