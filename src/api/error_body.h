#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

// Errors on the wire. The one table from Code to HTTP status is in error_body.cpp.
namespace flotilla::api {

int http_status(Code code);
// The Code that a peer of ours meant by `status`; Internal when it is none of the table's.
Code code_of_status(int status);

// {"error":{"message","type","param","code"}}: the form of /v1/*.
std::string openai_error_body(const Error& error);
// `data: {"error":…}\n\n`: how a stream ends that has begun and cannot go on. No [DONE] follows.
std::string openai_error_event(const Error& error);
// The type in Anthropic's {"type":"error","error":{"type","message"}}.
std::string_view anthropic_error_type(Code code);
// RFC 9457 problem JSON: the form of /admin/*; its content type.
std::string problem_body(const Error& error);
inline constexpr std::string_view kProblemContentType = "application/problem+json";

// An upstream's answer as an Error: the message of an OpenAI or problem body, else the start of it.
Error parse_error_body(int status, std::string_view body);

}  // namespace flotilla::api
