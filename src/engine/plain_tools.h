#pragma once

#include <chat.h>
#include <vector>

// Tools for models whose template knows none: they are described in the system message, called in
// <tool_call> blocks (the form that most small models have seen) and answered in <tool_response>
// blocks of the user's. For this folder's .cpp files only.
namespace flotilla::engine {

// The messages with tools, calls and results written out.
std::vector<common_chat_msg> write_out_tools(const std::vector<common_chat_msg>& messages,
                                             const std::vector<common_chat_tool>& tools);

// For LFM2's templates, which describe tools and leave out what was called: puts the calls of a
// message into its content, as the model wrote them.
void write_out_calls(common_chat_msg& message);

// Gives `params` the parser and the grammar of such answers. `tools`: with the schemas that guide.
// Throws what llama-common throws.
void parse_plain_tools(common_chat_params& params, const std::vector<common_chat_tool>& tools,
                       bool required, bool parallel);

}  // namespace flotilla::engine
