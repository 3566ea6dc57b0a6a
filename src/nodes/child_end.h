#pragma once

#include <chrono>

#include "base/task.h"
#include "platform/process.h"

namespace flotilla::nodes {

// Waits for the process, which is killed when `limit` is over.
Awaitable<void> end_child(Executor executor, platform::Process& process,
                          std::chrono::milliseconds limit);

}  // namespace flotilla::nodes
