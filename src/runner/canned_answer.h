#pragma once

#include <string>

#include "base/task.h"
#include "http/server.h"
#include "runner/call_headers.h"

namespace flotilla::runner {

// An answer of `chunks` words, written one chunk after the other without computing anything: what a
// relay in front of it is measured with. Of the synthetic runner only.
Awaitable<void> write_canned_answer(http::Exchange& exchange, CallHeaders headers,
                                    std::string alias, int chunks);

}  // namespace flotilla::runner
