#pragma once

#include <string>

#include "client/asker.h"

// Behaviours around clients that go away: what is computed for nobody must not keep others waiting.
// Each says why it does not hold; empty: it does.
namespace flotilla::client {

Awaitable<std::string> leave_before_the_answer(Asker& asker);
Awaitable<std::string> leave_at_the_head(Asker& asker);
Awaitable<std::string> leave_midway(Asker& asker);
Awaitable<std::string> leave_before_the_whole_answer(Asker& asker);
// A stream that may go on to the context's edge, left at its head.
Awaitable<std::string> ask_for_more_than_the_context(Asker& asker);

}  // namespace flotilla::client
