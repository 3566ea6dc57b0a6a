#pragma once

#include <string>
#include <string_view>

#include "api/answer_form.h"
#include "base/result.h"

// OpenAI's Responses API as a face of chat requests. Unknown fields are accepted; what is known and
// not honoured (background, conversations, the server's own tools …) is refused by name.
namespace flotilla::api {

// POST /v1/responses. The answer is kept unless store is false.
Result<FormRequest> parse_responses_request(std::string_view body);

std::string deleted_response_json(std::string_view id);

}  // namespace flotilla::api
