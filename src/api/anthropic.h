#pragma once

#include <string>
#include <string_view>

#include "api/answer_form.h"
#include "base/result.h"

// Anthropic's Messages API as a face of chat requests. Unknown fields are accepted; what is known
// and not honoured (images, documents, server tools, containers …) is refused by name.
namespace flotilla::api {

// POST /v1/messages. A last message of the assistant's is continued.
Result<FormRequest> parse_messages_request(std::string_view body);
// POST /v1/messages/count_tokens. The answer form takes what the count of the chat request says
// (token_count_json), never a stream.
Result<FormRequest> parse_count_request(std::string_view body);

// {"type":"error","error":{"type","message"}}
std::string anthropic_error_body(const Error& error);

}  // namespace flotilla::api
