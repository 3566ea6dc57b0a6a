#pragma once

#include <memory>

#include "base/task.h"
#include "gateway/pool_runtime.h"

namespace flotilla::gateway {

// Brings a runner's heartbeats (GET /runner/events) to the pool's brain until the launch is over.
// Silence is the brain's to judge.
Awaitable<void> watch_runner(Executor executor, std::shared_ptr<PoolRuntime> pool,
                             std::shared_ptr<LaunchRuntime> launch);

}  // namespace flotilla::gateway
