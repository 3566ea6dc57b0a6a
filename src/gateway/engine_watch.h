#pragma once

#include <chrono>
#include <memory>

#include "base/task.h"
#include "gateway/pool_runtime.h"

namespace flotilla::gateway {

// How an engine that is not ours is reached.
struct EngineWay {
  http::Endpoint endpoint;
  bool ours_to_start = false;  // an agent runs it: it is waited for, and its exit is told
  std::int64_t model_bytes = 0;
};

// To the server that an http node is, and what its node says of it. InvalidArgument: its url.
Result<EngineWay> way_to(const api::NodeSpec& node);
api::ForeignEngine engine_at(const api::NodeSpec& node);

// A foreign engine as the replica of a launch, whose `engine` is set: ready once it has answered,
// then asked again for as long as the launch lives. What it says and the bytes of its answers are
// its heartbeats, so that the pool sees a hang; a server elsewhere that refuses connections is lost
// at once.
Awaitable<void> serve_engine(std::shared_ptr<PoolRuntime> pool,
                             std::shared_ptr<LaunchRuntime> launch, EngineWay way,
                             std::chrono::milliseconds watchdog);

}  // namespace flotilla::gateway
