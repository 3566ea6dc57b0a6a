#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"
#include "cluster/load_plan.h"
#include "gateway/control.h"
#include "gateway/under_way.h"
#include "model/alias.h"

// Pools: loaded, unloaded, their replicas told what to do.
namespace flotilla::gateway {
namespace {

// All that can be reached must be able to load it; one that is away is tried when it is back.
// A model that is nowhere is refused whatever is asked; the rest unless forced: the other nodes
// serve without the one that cannot.
Result<void> judge(const std::vector<api::NodePreflight>& nodes, bool force) {
  const auto away = [](const api::NodePreflight& node) { return !node.error.empty(); };
  std::string troubles;
  std::string before;  // the nodes of one machine have the same words
  bool memory_only = true;
  for (const api::NodePreflight& node : nodes) {
    if (away(node) || node.fits()) continue;
    memory_only = memory_only && node.loadable() && node.differs.empty();
    const std::string words = node.words();
    if (words == before) continue;
    std::string names;
    for (const api::NodePreflight& other : nodes)
      if (!away(other) && other.words() == words) names += (names.empty() ? "" : ", ") + other.node;
    troubles += fmt::format("{}node {}: {}", troubles.empty() ? "" : "; ", names, words);
    before = words;
  }
  if (!nodes.empty() && std::ranges::all_of(nodes, away)) {
    for (const api::NodePreflight& node : nodes)
      troubles += fmt::format("{}{}: {}", troubles.empty() ? "" : "; ", node.node, node.error);
    return fail(Error{.code = Code::BadGateway,
                      .message = fmt::format("no node can be reached: {}", troubles),
                      .reason = "no_node_reached"});
  }
  if (troubles.empty()) return {};
  if (force && std::ranges::any_of(nodes, &api::NodePreflight::loadable)) return {};
  if (memory_only) {
    return fail(Error{.code = Code::Unprocessable,
                      .message = fmt::format("{}. Take fewer nodes, a smaller context or "
                                             "batch_size, or force",
                                             troubles),
                      .reason = "does_not_fit"});
  }
  return fail(Error{.code = Code::Unprocessable, .message = std::move(troubles), .param = "model"});
}

}  // namespace

Result<void> Control::check_new_pool(const std::string& cluster, const api::LoadSpec& load) const {
  if (auto idle = check_idle(cluster, load.alias); !idle) return idle;
  std::vector<std::string> names = load.aliases;
  names.push_back(load.alias);
  for (const auto& pool : fleet_.pools()) {
    const auto& other = pool->generation().load;
    for (const std::string& name : names) {
      if (name != other.alias && std::ranges::find(other.aliases, name) == other.aliases.end())
        continue;
      return fail(Code::Conflict,
                  fmt::format("alias \"{}\" is taken by the pool {} on cluster {} (model {}); "
                              "unload or reload it, or load under another alias than {}",
                              name, other.alias, pool->options().cluster, other.model, name));
    }
    if (load.is_default && other.is_default) {
      return fail(Code::Conflict,
                  fmt::format("pool {} is the default already; there is one", other.alias));
    }
  }
  if (clusters_.at(cluster).nodes.empty())
    return fail(Code::Conflict, fmt::format("cluster {} has no nodes", cluster));
  return {};
}

Result<std::shared_ptr<PoolRuntime>> Control::choose_pool(const std::string& cluster,
                                                          const std::string& alias) const {
  if (find_cluster(cluster) == nullptr)
    return fail(Code::NotFound, fmt::format("there is no cluster \"{}\"", cluster));
  std::vector<std::shared_ptr<PoolRuntime>> candidates;
  for (const auto& pool : fleet_.pools()) {
    if (pool->options().cluster != cluster) continue;
    if (alias.empty() || pool->alias() == alias) candidates.push_back(pool);
  }
  if (candidates.empty()) {
    return fail(Code::NotFound, alias.empty()
                                    ? fmt::format("cluster {} has no pool", cluster)
                                    : fmt::format("cluster {} has no pool \"{}\"", cluster, alias));
  }
  if (candidates.size() > 1) {
    return fail(Code::InvalidArgument,
                fmt::format("cluster {} has several pools; say which alias", cluster));
  }
  return candidates.front();
}

Result<void> Control::check_engine(const api::LoadSpec& load) const {
  if (load.engine.empty() || api::find_engine(fleet_.engines(), load.engine) != nullptr) return {};
  std::string known;
  for (const api::EngineTemplate& one : fleet_.engines())
    known += (known.empty() ? "" : ", ") + one.name;
  return fail(
      Error{.code = Code::Unprocessable,
            .message = fmt::format("there is no engine \"{}\" ({}); {}", load.engine,
                                   known.empty() ? "none is configured" : "there is " + known,
                                   api::how_to_configure(load.engine)),
            .param = "engine",
            .reason = "engine_not_configured"});
}

Task<void> Control::preflight(const api::ClusterSpec& cluster, const GenerationSpec& generation) {
  const auto nodes = co_await ask_nodes(cluster, generation);
  co_return judge(nodes, generation.load.force);
}

// For a reload: true if the new replicas have room while the old ones are still there. Node by node
// each new one has what its old one gives back.
Task<bool> Control::fits_beside(const api::ClusterSpec& cluster, const PoolRuntime& pool,
                                const GenerationSpec& next) {
  auto nodes = co_await ask_nodes(cluster, next);
  const auto fits = [](const api::NodePreflight& node) {
    return !node.error.empty() || node.fits();
  };
  if (std::ranges::all_of(nodes, fits)) co_return true;
  for (api::NodePreflight& node : nodes) {
    if (const auto& old = pool.model()) node.answer.free_bytes += old->model_bytes + old->kv_bytes;
    node.answer.fits =
        node.answer.need_bytes > 0 && node.answer.need_bytes <= node.answer.free_bytes;
    node.sharing = 1;
  }
  const auto verdict = judge(nodes, next.load.force);
  if (!verdict) co_return fail(verdict.error());
  co_return false;
}

int Control::pool_width(const api::LoadSpec& load) const {
  if (!load.batch) return 1;
  return load.batch_size != 0 ? load.batch_size : options_.knobs->runner_batch_size;
}

cluster::PoolSettings Control::pool_settings(const api::LoadSpec& load) const {
  const Knobs& knobs = *options_.knobs;
  cluster::PoolSettings settings;
  settings.heal = {.backoff_min = knobs.replica_backoff_min,
                   .backoff_max = knobs.replica_backoff_max,
                   .stable = knobs.replica_stable,
                   .restart_timeout = knobs.replica_restart_timeout,
                   .load_stall = std::chrono::seconds(120),
                   .watchdog = knobs.replica_watchdog,
                   .drain = knobs.drain};
  settings.queue = {.tickets_max = static_cast<std::size_t>(knobs.queue_max),
                    .bytes_max = static_cast<std::uint64_t>(knobs.queue_max_bytes),
                    .age_max = knobs.queue_max_age};
  settings.affinity.ttl = knobs.replica_affinity_ttl;
  if (knobs.replica_max_concurrent_set)
    settings.affinity.concurrent_max = knobs.replica_max_concurrent;
  settings.ahead = load.batch ? knobs.runner_ahead : 0;
  return settings;
}

std::shared_ptr<PoolRuntime> Control::make_pool(const api::ClusterSpec& cluster,
                                                GenerationSpec generation) {
  PoolRuntime::Options about{.cluster = cluster.id,
                             .generation = std::move(generation),
                             .created_unix_s = options_.clock->unix_ms() / 1000,
                             .settings = {},
                             .nodes = nodes_of(cluster)};
  about.settings = pool_settings(about.generation.load);
  auto pool = std::make_shared<PoolRuntime>(options_.executor, *options_.clock, *options_.random,
                                            fleet_, std::move(about));
  fleet_.attach(pool);
  for (const api::NodeSpec& node : nodes_of(cluster)) pool->add_node(node, fleet_.link_of(node));
  pool->pump();
  ++changes_;
  return pool;
}

// false: the pool was removed meanwhile.
Awaitable<bool> Control::wait_until(std::shared_ptr<PoolRuntime> pool, std::function<bool()> done) {
  while (!done()) {
    if (std::ranges::find(fleet_.pools(), pool) == fleet_.pools().end()) co_return false;
    co_await changed_.async_wait(kAwait);
  }
  co_return true;
}

// Writes what is wanted, with a generation of its own.
Task<std::int64_t> Control::declare(std::string cluster, api::LoadSpec load) {
  auto work = [this, cluster = std::move(cluster),
               load = std::move(load)]() -> Result<std::int64_t> {
    auto number = store_.next_generation();
    if (!number) return number;
    auto written = store_.put_pool({load.alias, cluster, api::to_json(load), *number});
    if (!written) return fail(written.error());
    return number;
  };
  co_return co_await on_disk(std::move(work));
}

Task<Control::Loaded> Control::load(std::string cluster_id, api::LoadSpec load) {
  const Instant began = options_.clock->now();
  if (find_cluster(cluster_id) == nullptr) {
    co_return fail(Code::NotFound,
                   fmt::format("there is no cluster \"{}\"; PUT /admin/clusters/{} makes it",
                               cluster_id, cluster_id));
  }
  const api::ClusterSpec cluster = clusters_.at(cluster_id);
  if (load.alias.empty()) load.alias = model::default_alias(load.model);
  std::vector<std::string> names = load.aliases;
  names.push_back(load.alias);
  for (const std::string& name : names) {
    if (auto valid = model::check_alias(name); !valid) co_return fail(valid.error());
  }
  if (const auto same = find_pool(load.alias); same && !under_way_.contains(load.alias) &&
                                               same->options().cluster == cluster_id &&
                                               same->generation().load.same_settings(load)) {
    Loaded loaded{.pool = same, .load_s = 0, .complete = true};
    co_return loaded;
  }
  if (auto may = check_new_pool(cluster_id, load); !may) co_return fail(may.error());
  if (auto known = check_engine(load); !known) co_return fail(known.error());

  Work work{.cluster = cluster_id, .what = "loaded"};
  const UnderWay mark(under_way_, load.alias, std::move(work));
  co_await names_.settle();
  GenerationSpec generation{.load = load, .number = 0, .width = pool_width(load)};
  const auto fits = co_await preflight(cluster, generation);
  if (!fits) co_return fail(fits.error());
  const auto number = co_await declare(cluster_id, load);
  if (!number) co_return fail(number.error());
  generation.number = *number;

  const auto pool = make_pool(cluster, std::move(generation));
  Loaded loaded{.pool = pool, .load_s = 0, .complete = false};
  if (!load.wait) co_return loaded;
  auto verdict = cluster::LoadAnswer::Pending;
  std::function<bool()> decided = [&] {
    verdict = cluster::load_answer(pool->brain().snapshot(options_.clock->now()).replicas);
    return verdict != cluster::LoadAnswer::Pending;
  };
  const bool there = co_await wait_until(pool, std::move(decided));
  if (!there)
    co_return fail(Code::Conflict, fmt::format("pool {} was unloaded while it loaded", load.alias));
  if (verdict == cluster::LoadAnswer::Failed) {
    const std::string reasons =
        cluster::load_failures(pool->brain().snapshot(options_.clock->now()).replicas);
    co_await remove_pool(pool, true);
    Error error{.code = Code::BadGateway,
                .message = fmt::format("no replica of {} came up: {}", load.alias, reasons),
                .reason = "no_replica_came_up"};
    co_return fail(std::move(error));
  }
  loaded.load_s = to_s(options_.clock->now() - began);
  loaded.complete = true;
  co_return loaded;
}

Task<void> Control::remove_pool(std::shared_ptr<PoolRuntime> pool, bool force) {
  const std::string alias = pool->alias();
  auto erase = [this, alias] { return store_.delete_pool(alias); };
  const auto deleted = co_await on_disk(std::move(erase));
  if (!deleted) co_return fail(deleted.error());
  pool->brain().close(
      Error{.code = Code::NotFound,
            .message = fmt::format("model \"{}\" was unloaded while the request waited", alias),
            .param = "model",
            .reason = "model_not_found"},
      force, options_.clock->now());
  pool->pump();
  std::function<bool()> gone = [pool] { return pool->stopped() && pool->runners_gone(); };
  co_await wait_until(pool, std::move(gone));
  fleet_.detach(pool);
  ++changes_;
  co_return Result<void>{};
}

Task<std::string> Control::unload(std::string cluster_id, api::UnloadSpec unload) {
  const auto chosen = choose_pool(cluster_id, unload.alias);
  if (!chosen) co_return fail(chosen.error());
  const auto& pool = *chosen;
  const std::string alias = pool->alias();
  if (auto idle = check_idle(cluster_id, alias); !idle && !unload.force) {
    Error error = idle.error();
    error.message += ", or force";
    co_return fail(std::move(error));
  }
  Work work{.cluster = cluster_id, .what = "unloaded"};
  const UnderWay mark(under_way_, alias, std::move(work));
  const auto removed = co_await remove_pool(pool, unload.force);
  if (!removed) co_return fail(removed.error());
  co_return alias;
}

Task<std::shared_ptr<PoolRuntime>> Control::order_replica(ReplicaOrder order) {
  const auto chosen = choose_pool(order.cluster, order.alias);
  if (!chosen) co_return fail(chosen.error());
  const auto& pool = *chosen;
  const NodeId node(order.node);
  const auto nodes = pool->nodes();
  if (std::ranges::find(nodes, node) == nodes.end()) {
    std::string known;
    for (const NodeId& one : nodes) known += (known.empty() ? "" : ", ") + one.str();
    co_return fail(Code::NotFound, fmt::format("pool {} has no replica on a node \"{}\"; it has {}",
                                               pool->alias(), order.node, known));
  }
  if (auto idle = check_idle(order.cluster, pool->alias()); !idle) co_return fail(idle.error());
  const cluster::ReplicaIndex replica = pool->replica_of(node);
  const Instant now = options_.clock->now();
  if (order.action == api::ReplicaAction::Resume) {
    pool->brain().resume(replica, now);
    pool->pump();
    co_return pool;
  }
  const bool restart = order.action == api::ReplicaAction::Restart;
  pool->brain().drain(replica, restart ? cluster::AfterDrain::Restart : cluster::AfterDrain::Hold,
                      false, now);
  pool->pump();
  if (!restart) co_return pool;
  Work work{.cluster = order.cluster, .what = fmt::format("restarted on {}", order.node)};
  const UnderWay mark(under_way_, pool->alias(), std::move(work));
  std::function<bool()> settled = [pool, replica, node] {
    using State = cluster::ReplicaState;
    for (const auto& one : pool->replicas()) {
      if (one.index != replica || one.node != node) continue;
      return one.state == State::Ready || one.state == State::Waiting;
    }
    return true;  // taken out meanwhile
  };
  co_await wait_until(pool, std::move(settled));
  co_return pool;
}

}  // namespace flotilla::gateway
