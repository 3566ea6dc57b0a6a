#pragma once

#include <string>
#include <vector>

#include "api/doctor.h"
#include "base/task.h"
#include "gateway/routes.h"

namespace flotilla::gateway {

// Looks at each node of a cluster: can it be reached, is its flotilla ours, are the models of the
// pools there and the same, is there room left; and at its pools and their replicas. All machines
// at once.
Awaitable<std::vector<api::Finding>> examine(Control& control, api::ClusterSpec cluster,
                                             int queue_max);

// Looks at what the server itself needs: room for its state, files that it may open, keys that are
// good.
std::vector<api::Finding> examine_server(const Service& service);

}  // namespace flotilla::gateway
