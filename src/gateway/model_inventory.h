#pragma once

#include "api/inventory.h"
#include "base/task.h"
#include "gateway/control.h"

namespace flotilla::gateway {

// The model files that a cluster's nodes have. All machines are asked at once; the nodes of one
// machine have one answer, if they look in one folder.
Awaitable<api::ClusterModels> models_in(Control& control, Executor executor,
                                        api::ClusterSpec cluster);

}  // namespace flotilla::gateway
