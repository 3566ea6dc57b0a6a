#pragma once

#include <optional>

#include "api/agent_frames.h"
#include "base/clock.h"

namespace flotilla::agent {

// The machine's numbers; its load is that since the look before.
class Telemetry {
 public:
  explicit Telemetry(const Clock& clock) : clock_(clock) {}
  // All but the replicas.
  api::AgentTelemetry look();

 private:
  const Clock& clock_;
  std::optional<double> busy_s_;
  Instant looked_;
};

}  // namespace flotilla::agent
