#pragma once

#include <memory>

#include "api/answer_form.h"

namespace flotilla::api {

// Chat chunks as Anthropic's events (message_start, content_block_*, message_delta, message_stop,
// ping, error); a whole answer as its message. `hide_thinking`: that there was some is all that is
// told of it.
std::unique_ptr<AnswerForm> make_anthropic_answer(bool hide_thinking);

}  // namespace flotilla::api
