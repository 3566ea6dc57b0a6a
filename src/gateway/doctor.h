#pragma once

#include <string>
#include <vector>

#include "api/doctor.h"
#include "base/task.h"
#include "gateway/control.h"

namespace flotilla::gateway {

// Looks at each node of a cluster: can it be reached, is its flotilla ours, are the models of the
// pools there and the same, is there room left. All machines at once.
Awaitable<std::vector<api::Finding>> examine(Control& control, api::ClusterSpec cluster);

}  // namespace flotilla::gateway
