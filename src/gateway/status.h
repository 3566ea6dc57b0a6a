#pragma once

#include "api/admin.h"
#include "gateway/control.h"

namespace flotilla::gateway {

// What is, as the API tells it: from the brains' snapshots and what the runners said of themselves.
api::PoolStatus pool_status(const PoolRuntime& pool, const Fleet& fleet);
api::ClusterStatus cluster_status(const Control& control, const api::ClusterSpec& cluster);

}  // namespace flotilla::gateway
