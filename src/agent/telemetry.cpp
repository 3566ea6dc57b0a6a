#include "agent/telemetry.h"

#include <algorithm>

#include "platform/cpu_info.h"
#include "platform/memory_info.h"

namespace flotilla::agent {

api::AgentTelemetry Telemetry::look() {
  api::AgentTelemetry out;
  const platform::MemoryInfo memory = platform::memory_info();
  out.memory_total = memory.total_bytes;
  out.memory_available = memory.available_bytes;
  out.cores = platform::usable_cores();
  const auto busy_s = platform::busy_core_seconds();
  const Instant now = clock_.now();
  const double passed_s = to_s(now - looked_);
  if (busy_s && busy_s_ && passed_s > 0)
    out.cpu_load = std::max(0.0, (*busy_s - *busy_s_) / passed_s);
  busy_s_ = busy_s;
  looked_ = now;
  return out;
}

}  // namespace flotilla::agent
