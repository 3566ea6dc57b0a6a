#pragma once

#include <string_view>

#include "api/answer_form.h"
#include "base/result.h"

namespace flotilla::api {

// POST /v1/completions: prompts that no chat template touches, as a face of chat requests with
// raw_prompts.h instead of messages. Unknown fields are accepted; suffix, best_of beyond n, and
// echo with logprobs are refused by name.
Result<FormRequest> parse_completion_request(std::string_view body);

}  // namespace flotilla::api
