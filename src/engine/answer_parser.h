#pragma once

#include <chat.h>
#include <memory>

#include "engine/chat.h"

namespace flotilla::engine {

struct AnswerParserOptions {
  bool tools = false;
  bool one_call = false;   // more than one are left out
  bool continued = false;  // the prompt ends inside the answer: only what follows is shown
};

// The parser that llama-common made with a prompt. For this folder's .cpp files only.
std::shared_ptr<const AnswerParser> make_answer_parser(const common_chat_params& params,
                                                       const AnswerParserOptions& options);

}  // namespace flotilla::engine
