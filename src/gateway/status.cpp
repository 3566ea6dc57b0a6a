#include "gateway/status.h"

#include <algorithm>

#include "cluster/load_plan.h"

namespace flotilla::gateway {
namespace {

api::ReplicaStatus replica_status(const cluster::ReplicaStatus& replica, const PoolRuntime& pool,
                                  const Fleet& fleet) {
  api::ReplicaStatus out;
  out.index = static_cast<int>(replica.index);
  out.node = replica.node.str();
  if (const api::NodeSpec* node = pool.node_spec(replica.node)) out.host = fleet.host_of(*node);
  out.live = replica.live;
  out.state = replica.node_away ? "waiting (node away)" : to_string(replica.state);
  out.busy_count = replica.busy_count;
  out.queued = replica.queued;
  out.restarts = static_cast<int>(replica.restarts);
  out.attempts = static_cast<int>(replica.attempts);
  if (replica.next_retry) out.next_retry_in_s = to_s(*replica.next_retry);
  out.last_error = replica.last_error;
  if (!replica.live) out.log_tail = pool.log_tail(replica.node);
  out.model_bytes =
      static_cast<std::int64_t>(std::max(replica.total_bytes, replica.info.model_bytes));
  out.loaded_bytes =
      replica.live ? out.model_bytes : static_cast<std::int64_t>(replica.loaded_bytes);
  out.tokens_per_s = replica.tokens_per_s;
  out.step_overhead = replica.step_overhead;
  out.resident_bytes = replica.resident_bytes;
  out.trimmed = replica.trimmed;
  if (const auto launch = pool.find_live(replica.index)) {
    if (launch->engine) out.engine = launch->engine->name.empty() ? "other" : launch->engine->name;
    out.sessions_stored = launch->told.stored;
    out.session_store_bytes = launch->told.stored_bytes;
    out.session_store_disk_bytes = launch->told.disk_bytes;
    if (const api::RunnerDrafts& drafts = launch->told.drafts; !drafts.mode.empty()) {
      out.speculate = {.mode = drafts.mode,
                       .reason = drafts.reason,
                       .drafted_tokens = drafts.drafted_tokens,
                       .accepted_tokens = drafts.accepted_tokens};
    }
  }
  return out;
}

const char* load_phase(const cluster::ReplicaStatus& replica) {
  if (replica.live) return "ready";
  if (replica.state == cluster::ReplicaState::Loading) return "loading";
  if (replica.state == cluster::ReplicaState::Starting) return "starting";
  return "failed";
}

// Present while some replica has not been ready or failed once.
std::optional<api::LoadingStatus> loading_status(const PoolRuntime& pool) {
  const auto snapshot = pool.brain().snapshot(pool.now());
  if (cluster::load_answer(snapshot.replicas) != cluster::LoadAnswer::Pending) return std::nullopt;
  api::LoadingStatus out;
  out.alias = pool.alias();
  out.elapsed_s = to_s(pool.now() - pool.began());
  if (const auto eta = cluster::load_eta(snapshot.replicas)) out.eta_s = to_s(*eta);
  for (const cluster::ReplicaStatus& replica : snapshot.replicas) {
    out.nodes.push_back({.node = replica.node.str(),
                         .phase = load_phase(replica),
                         .loaded_bytes = static_cast<std::int64_t>(
                             replica.live ? replica.total_bytes : replica.loaded_bytes),
                         .total_bytes = static_cast<std::int64_t>(replica.total_bytes),
                         .bytes_per_s = replica.bytes_per_s,
                         .stalled = replica.stalled});
  }
  return out;
}

}  // namespace

api::PoolStatus pool_status(const PoolRuntime& pool, const Fleet& fleet) {
  const auto snapshot = pool.brain().snapshot(pool.now());
  api::PoolStatus out;
  out.alias = pool.alias();
  const GenerationSpec& serving = pool.find_generation(snapshot.generation);
  out.model = serving.load.model;
  out.generation = serving.number;
  out.exact_resume = snapshot.exact_resume;
  out.queue_depth = static_cast<int>(snapshot.queue_depth);
  out.in_flight = static_cast<int>(snapshot.in_flight);
  out.tokens_per_s = snapshot.tokens_per_s;
  if (const auto& model = pool.model()) {
    out.quantization = model->quantization;
    out.size_bytes = model->model_bytes;
    out.context_length = model->context;
  }
  for (const cluster::ReplicaStatus& replica : snapshot.replicas) {
    if (replica.state == cluster::ReplicaState::Stopped) continue;
    out.replicas.push_back(replica_status(replica, pool, fleet));
    out.batch_size = std::max(out.batch_size, replica.info.width);
    if (!replica.info.batch_reason.empty()) out.batch_reason = replica.info.batch_reason;
    if (replica.live && out.context_length == 0) out.context_length = replica.info.context;
  }
  for (const api::ReplicaStatus& replica : out.replicas)
    if (out.size_bytes == 0) out.size_bytes = replica.model_bytes;
  out.engines = pool.engines();
  out.lacks = pool.lacks();
  out.batch = out.batch_size > 1;
  if (!out.batch && serving.load.batch && out.batch_reason.empty()) {
    out.batch_reason = "no replica has been ready yet";
  }
  return out;
}

api::ClusterStatus cluster_status(const Control& control, const api::ClusterSpec& cluster) {
  api::ClusterStatus out{.spec = cluster, .nodes = {}, .loading = {}, .pools = {}};
  for (const api::NodeSpec& node : control.nodes_of(cluster))
    out.nodes.push_back(control.fleet().status_of(node));
  for (const auto& pool : control.pools()) {
    if (pool->options().cluster != cluster.id) continue;
    out.pools.push_back(pool_status(*pool, control.fleet()));
    if (auto loading = loading_status(*pool)) out.loading.push_back(std::move(*loading));
  }
  return out;
}

}  // namespace flotilla::gateway
