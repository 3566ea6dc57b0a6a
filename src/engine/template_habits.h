#pragma once

#include <chat.h>

// What a template does with what not all of them know: found out once, at load, by asking it. For
// this folder's .cpp files only.
namespace flotilla::engine {

// Does it describe tools, and does llama-common find out how its model calls them?
bool knows_tools(const common_chat_templates* templates);

// Are a conversation's system messages shown wherever they stand?
bool shows_late_systems(const common_chat_templates* templates);

// Does it describe tools and show their results, but not what was called?
bool leaves_calls_out(const common_chat_templates* templates);

}  // namespace flotilla::engine
