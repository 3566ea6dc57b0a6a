#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"
#include "cluster/load_plan.h"
#include "gateway/control.h"
#include "gateway/under_way.h"

// A pool's way from one generation to the next.
namespace flotilla::gateway {
namespace {

bool is_decided(const cluster::ReplicaStatus& replica) { return replica.first_attempt_over; }
bool is_live(const cluster::ReplicaStatus& replica) { return replica.live; }

}  // namespace

// All new replicas come up while the old ones serve; then those drain. false: none came up.
Awaitable<bool> Control::bring_beside(std::shared_ptr<PoolRuntime> pool,
                                      std::vector<api::NodeSpec> nodes) {
  for (const api::NodeSpec& node : nodes) pool->add_node(node, fleet_.link_of(node));
  pool->pump();
  std::function<bool()> decided = [pool] {
    return pool->brain().closed() ||
           cluster::load_answer(pool->replicas()) != cluster::LoadAnswer::Pending;
  };
  co_await wait_until(pool, std::move(decided));
  if (cluster::load_answer(pool->replicas()) != cluster::LoadAnswer::Loaded) co_return false;
  for (const api::NodeSpec& node : nodes) pool->retire(NodeId(node.id));
  pool->pump();
  co_return true;
}

// Each node's old replica drains and ends, then its new one comes up. The new one is there from the
// beginning, waiting, so that requests wait for it instead of being refused.
Awaitable<bool> Control::bring_in_turn(std::shared_ptr<PoolRuntime> pool,
                                       std::vector<api::NodeSpec> nodes) {
  for (const api::NodeSpec& node : nodes) {
    const NodeId id(node.id);
    pool->add_node(node, cluster::Link::Connecting);
    pool->retire(id);
    pool->pump();
    std::function<bool()> gone = [pool, id] { return pool->retired(id); };
    co_await wait_until(pool, std::move(gone));
    if (pool->brain().closed()) co_return false;
    if (fleet_.link_of(node) == cluster::Link::Up)
      pool->brain().on_node_back(id, options_.clock->now());
    pool->pump();
    std::function<bool()> decided = [pool] {
      return pool->brain().closed() || std::ranges::all_of(pool->replicas(), is_decided);
    };
    co_await wait_until(pool, std::move(decided));
    if (!std::ranges::any_of(pool->replicas(), is_live)) co_return false;
  }
  co_return true;
}

void Control::abandon(PoolRuntime& pool) {
  for (const NodeId& node : pool.abandon_generation()) {
    const api::NodeSpec* spec = pool.node_spec(node);
    if (spec != nullptr) pool.add_node(*spec, fleet_.link_of(*spec));
  }
  pool.configure(pool_settings(pool.generation().load));
}

Task<Control::Loaded> Control::reload(std::string cluster_id, api::ReloadSpec reload) {
  const Instant began = options_.clock->now();
  const auto chosen = choose_pool(cluster_id, reload.alias);
  if (!chosen) co_return fail(chosen.error());
  const auto& pool = *chosen;
  if (auto idle = check_idle(cluster_id, pool->alias()); !idle) co_return fail(idle.error());
  Work work{.cluster = cluster_id, .what = "reloaded"};
  const UnderWay mark(under_way_, pool->alias(), std::move(work));

  const api::ClusterSpec cluster = clusters_.at(cluster_id);
  const GenerationSpec before = pool->generation();
  GenerationSpec next = before;
  next.load.force = reload.force;
  if (reload.model) next.load.model = *reload.model;
  if (reload.batch) next.load.batch = *reload.batch;
  next.width = pool_width(next.load);
  const auto beside = co_await fits_beside(cluster, *pool, next);
  if (!beside) co_return fail(beside.error());
  const auto number = co_await declare(cluster_id, next.load);
  if (!number) co_return fail(number.error());
  next.number = *number;
  log::info("pool {}: reloading as generation {}, {}", pool->alias(), next.number,
            *beside ? "beside the old one" : "node by node");
  const cluster::PoolSettings settings = pool_settings(next.load);
  pool->begin_generation(std::move(next));
  pool->configure(settings);
  auto bring =
      *beside ? bring_beside(pool, nodes_of(cluster)) : bring_in_turn(pool, nodes_of(cluster));
  const bool up = co_await std::move(bring);
  if (pool->brain().closed()) {
    co_return fail(Code::Conflict,
                   fmt::format("pool {} was unloaded while it was reloaded", pool->alias()));
  }
  if (!up) {
    Error error{.code = Code::BadGateway,
                .message = fmt::format("no replica of {} came up anew, the old ones go on: {}",
                                       pool->alias(), cluster::load_failures(pool->replicas())),
                .reason = "no_replica_came_up"};
    abandon(*pool);
    store::StoredPool stored{pool->alias(), cluster_id, api::to_json(before.load), before.number};
    auto write = [this, stored] { return store_.put_pool(stored); };
    const auto written = co_await on_disk(std::move(write));
    if (!written) log::error("{}", written.error().message);
    co_return fail(std::move(error));
  }
  std::function<bool()> gone = [pool] { return pool->all_retired(); };
  co_await wait_until(pool, std::move(gone));
  pool->finish_generation();
  ++changes_;
  Loaded loaded{.pool = pool, .load_s = to_s(options_.clock->now() - began), .complete = true};
  co_return loaded;
}

}  // namespace flotilla::gateway
