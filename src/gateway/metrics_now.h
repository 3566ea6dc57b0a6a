#pragma once

#include <string>
#include <string_view>

#include "gateway/control.h"
#include "gateway/metrics.h"

namespace flotilla::gateway {

// The answer of /metrics in Prometheus' text form: what was counted, and what is at this moment:
// pools, their replicas with the passes that each runner has counted, and this process.
std::string metrics_text(const Metrics& counted, const Control& control, std::string_view version);

}  // namespace flotilla::gateway
