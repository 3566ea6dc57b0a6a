#pragma once

#include <chrono>
#include <memory>

#include "base/task.h"
#include "gateway/pool_runtime.h"

namespace flotilla::gateway {

// A node that is a fixed OpenAI-compatible URL: ready once it lists its models and, with batch, has
// answered two requests at the same time; then asked again every `period` until the launch is over.
Awaitable<void> serve_http_node(std::shared_ptr<PoolRuntime> pool,
                                std::shared_ptr<LaunchRuntime> launch, std::chrono::seconds period);

}  // namespace flotilla::gateway
