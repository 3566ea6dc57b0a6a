#pragma once

#include <vector>

#include "api/json.h"
#include "api/openai.h"

namespace flotilla::api {

// The member `messages` of a chat request: 1 to 10,000 messages, text only. Sets the reader's
// fault.
std::vector<ChatMessage> read_messages(json::Reader& in);

}  // namespace flotilla::api
