#pragma once

#include "api/json.h"
#include "api/openai.h"

namespace flotilla::api {

// The members of a chat request that say what form the answer takes: tools, tool_choice,
// parallel_tool_calls, response_format, grammar. Set the reader's fault.
void read_tools(json::Reader& in, ChatRequest& out);
void read_answer_form(json::Reader& in, ChatRequest& out);

}  // namespace flotilla::api
