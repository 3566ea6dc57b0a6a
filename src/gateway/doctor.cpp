#include "gateway/doctor.h"

#include <filesystem>

#include "gateway/diagnosis.h"
#include "gateway/status.h"
#include "platform/limits.h"

namespace flotilla::gateway {

Awaitable<std::vector<api::Finding>> examine(Control& control, api::ClusterSpec cluster,
                                             int queue_max) {
  co_await control.nodes().meet(cluster.nodes);
  ClusterFacts facts;
  facts.cluster = cluster.id;
  for (const auto& pool : std::vector(control.pools())) {
    if (pool->options().cluster != cluster.id) continue;
    const GenerationSpec generation = pool->generation();
    ClusterFacts::Pool about;
    about.batch_asked = generation.load.batch;
    about.queue_max = queue_max;
    if (generation.load.model != api::kSyntheticModel)
      about.preflight = co_await control.ask_nodes(cluster, generation);
    about.status = pool_status(*pool, control.fleet());
    facts.pools.push_back(std::move(about));
  }
  api::ClusterStatus status = cluster_status(control, cluster);
  facts.nodes = std::move(status.nodes);
  facts.loading = std::move(status.loading);
  for (const api::NodeSpec& node : cluster.nodes) {
    const auto machine = control.fleet().find_machine(node);
    if (machine && machine->is_up()) facts.machines[node.id] = machine->telemetry;
  }
  co_return diagnose(facts);
}

std::vector<api::Finding> examine_server(const Service& service) {
  ServerFacts facts;
  facts.state_dir = service.control.state_dir().string();
  std::error_code failed;
  const auto space = std::filesystem::space(service.control.state_dir(), failed);
  if (!failed) facts.state_free_bytes = static_cast<std::int64_t>(space.available);
  facts.open_files_max = platform::open_files_max();
  facts.keys = service.keys.list();
  facts.unix_s = service.clock.unix_ms() / 1000;
  return diagnose(facts);
}

}  // namespace flotilla::gateway
