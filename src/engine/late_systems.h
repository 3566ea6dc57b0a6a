#pragma once

#include <span>
#include <vector>

#include "engine/chat.h"

namespace flotilla::engine {

// For templates that know one system message, in front: those that follow it at once join it, and
// a later one's text stands in the user's turn beside it, or is one.
std::vector<ChatMessage> put_late_systems_in_turns(std::span<const ChatMessage> messages);

}  // namespace flotilla::engine
