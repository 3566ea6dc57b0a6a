#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/answer_form.h"
#include "base/result.h"

// OpenAI's Responses API as a face of chat requests. Unknown fields are accepted; what is known and
// not honoured (background, conversations, the server's own tools …) is refused by name.
namespace flotilla::api {

// POST /v1/responses. The answer is kept unless store is false. `stored`: the answers that it said
// it needs, as far as they are kept.
Result<FormRequest> parse_responses_request(std::string_view body,
                                            const std::vector<KeptAnswer>* stored = nullptr);

std::string deleted_response_json(std::string_view id);

}  // namespace flotilla::api
