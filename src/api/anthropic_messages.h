#pragma once

#include "api/json.h"

namespace flotilla::api {

// Anthropic's `system` and `messages` as a chat request's messages: one with several tool results
// becomes several. `continues`: the last one is the assistant's and is gone on with. Sets the
// reader's fault.
json::Array read_anthropic_messages(json::Reader& in, bool& continues);

}  // namespace flotilla::api
