#pragma once

#include <vector>

#include "api/agent_frames.h"
#include "base/task.h"

namespace flotilla::agent {

// What the platform's own tool tells of the machine's accelerators, asked every 10 s for as long as
// it is there. One thread.
class GpuWatch {
 public:
  explicit GpuWatch(Executor executor) : executor_(std::move(executor)) {}
  Awaitable<void> run();  // never returns by itself
  const std::vector<api::GpuTelemetry>& known() const { return known_; }

 private:
  Awaitable<bool> look();

  Executor executor_;
  std::vector<api::GpuTelemetry> known_;
};

}  // namespace flotilla::agent
