#pragma once

#include <memory>
#include <string>

#include "api/answer_form.h"

namespace flotilla::api {

// Chat chunks as Anthropic's events (message_start, content_block_*, message_delta, message_stop,
// ping, error); a whole answer as its message. `hide_thinking`: that there was some is all that is
// told of it.
std::unique_ptr<AnswerForm> make_anthropic_answer(bool hide_thinking);

// The body for what was wrong with the chat request, in the words of the message's own fields.
std::string messages_error_body(const Error& error);

}  // namespace flotilla::api
