#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "runner/call_headers.h"
#include "runner/prepare.h"

// What a runner answers without its engine's passes: words and counts. Bodies in, bodies out, for
// the text pool. A model's name is checked like a chat request's.
namespace flotilla::runner {

// As prepare_chat takes it.
using Compiles = std::function<void()>;
using TextAnswer = Result<std::string> (*)(const std::string& body, const CallHeaders& headers,
                                           const TextTools& tools, const Compiles& compiles);

Result<std::string> tokenize_answer(const std::string& body, const CallHeaders& headers,
                                    const TextTools& tools, const Compiles& compiles);
// InvalidArgument names the first id that is none of the model's.
Result<std::string> detokenize_answer(const std::string& body, const CallHeaders& headers,
                                      const TextTools& tools, const Compiles& compiles);
// The prompt's tokens of a chat request.
Result<std::string> count_answer(const std::string& body, const CallHeaders& headers,
                                 const TextTools& tools, const Compiles& compiles);

}  // namespace flotilla::runner
