#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "api/runner_protocol.h"
#include "base/log.h"
#include "gateway/engine_watch.h"
#include "gateway/fleet.h"
#include "gateway/runner_watch.h"

// What the machines' agents say, brought to the pools concerned.
namespace flotilla::gateway {
namespace {

cluster::ReplicaInfo replica_info(const api::RunnerInfo& info) {
  return cluster::ReplicaInfo{.width = info.width,
                              .batch_reason = info.batch_reason,
                              .context = info.context,
                              .numerics = info.numerics,
                              .exact_resume = info.exact_resume,
                              .model_bytes = static_cast<std::uint64_t>(info.model_bytes),
                              .kv_bytes = static_cast<std::uint64_t>(info.kv_bytes),
                              .external = false};
}

}  // namespace

void Fleet::on_link(Machine& machine, const nodes::LinkStatus& status) {
  if (status.state == nodes::LinkState::Down) {
    log::warning("the agent of {} is gone: {}", machine.name, status.reason);
    machine.sockets.clear();
    for (const auto& pool : std::vector(pools_)) {
      pool->note_agent_gone(machine.key);
      for (const NodeId& node : pool->nodes()) {
        const api::NodeSpec* spec = pool->node_spec(node);
        if (spec != nullptr && machine_key(*spec) == machine.key)
          pool->brain().on_node_lost(node, status.reason, pool->now());
      }
      pool->pump();
    }
  }
  tell_change();
}

void Fleet::on_agent(Machine& machine, const api::AgentEvent& event) {
  std::visit(
      [&](const auto& one) {
        if constexpr (requires { take(machine, one); }) take(machine, one);
      },
      event);
}

void Fleet::take(Machine& machine, const api::AgentHello& hello) {
  std::map<std::string, const api::HeldReplica*> ready;
  machine.loading.clear();
  for (const auto& held : hello.holds) {
    if (held.info) {
      ready[held.generation] = &held;
    } else {
      machine.loading[held.generation] = held.replica;
    }
  }
  for (const auto& pool : std::vector(pools_)) {
    for (const NodeId& node : pool->nodes()) {
      const api::NodeSpec* spec = pool->node_spec(node);
      if (spec == nullptr || machine_key(*spec) != machine.key) continue;
      const std::string text = held_text(pool->generation(), *spec);
      const auto found = ready.find(text);
      if (found != ready.end()) adopt(machine, pool, node, *found->second);
      const auto loading = machine.loading.find(text);
      if (loading != machine.loading.end()) pool->leave_wire(loading->second);
      pool->brain().on_node_back(node, pool->now());
    }
    pool->pump();
  }
  machine.loading.clear();
  for (const auto& held : hello.holds) {
    if (!find(held.replica).first)
      (void)machine.link->stop_replica({.replica = held.replica, .grace_ms = 0});
  }
  tell_change();
}

void Fleet::adopt(Machine& machine, const std::shared_ptr<PoolRuntime>& pool, const NodeId& node,
                  const api::HeldReplica& held) {
  const auto launch =
      pool->brain().adopt(pool->replica_of(node), replica_info(*held.info), pool->now());
  log::info("pool {}: took over the replica that runs on {}", pool->alias(), node.str());
  pool->note_model(*held.info);
  const auto adopted = pool->put_launch(launch, node, held.replica);
  adopted->machine = machine.key;
  serve(pool, adopted, held.socket);
}

void Fleet::take(Machine& machine, const api::ReplicaSpawned& spawned) {
  machine.sockets[spawned.replica] = spawned.socket;
  if (spawned.engine.empty()) return;
  const auto [pool, launch] = find(spawned.replica);
  // Told once more to a gateway that may have missed it.
  if (pool && !launch->dropped && !launch->engine) serve_template(pool, launch, spawned);
}

void Fleet::serve_http_node(const std::shared_ptr<PoolRuntime>& pool,
                            const std::shared_ptr<LaunchRuntime>& launch,
                            const api::NodeSpec& node) {
  auto way = way_to(node);
  if (!way) {
    // The brain is told from the event loop: it is in the middle of handing out actions.
    boost::asio::post(options_.executor,
                      [pool, launch = launch->launch, reason = way.error().message] {
                        pool->brain().on_start_failed(launch, reason, pool->now());
                        pool->pump();
                      });
    return;
  }
  launch->engine = engine_at(node);
  boost::asio::co_spawn(
      options_.executor,
      serve_engine(pool, launch, std::move(*way), options_.knobs->replica_watchdog),
      boost::asio::detached);
}

// An engine that an agent has started: at 127.0.0.1:PORT of this machine, or by a forward's socket.
void Fleet::serve_template(const std::shared_ptr<PoolRuntime>& pool,
                           const std::shared_ptr<LaunchRuntime>& launch,
                           const api::ReplicaSpawned& spawned) {
  const api::EngineTemplate* engine = api::find_engine(options_.engines, spawned.engine);
  if (engine == nullptr)
    return;  // it was started by a description that is gone, and will not be held
  EngineWay way{.endpoint = {}, .ours_to_start = true, .model_bytes = spawned.model_bytes};
  if (spawned.socket.starts_with('/')) {
    way.endpoint.unix_path = spawned.socket;
  } else if (const auto parsed = http::parse_url("http://" + spawned.socket)) {
    way.endpoint = *parsed;
  }
  way.endpoint.base_path = engine->base_path;
  launch->engine = api::ForeignEngine{
      .name = engine->name,
      .where = fmt::format("{} on {}", engine->name, launch->node.str()),
      .api_key = {},
      .model = api::fill_text(engine->body_model, {.alias = launch->generation->load.alias,
                                                   .model = launch->generation->load.model}),
      .health = engine->health,
      .drops_seed = engine->drops_seed,
      .salts_cache = engine->salts_cache,
      .lacks = engine->lacks};
  boost::asio::co_spawn(
      options_.executor,
      serve_engine(pool, launch, std::move(way), options_.knobs->replica_watchdog),
      boost::asio::detached);
}

void Fleet::take(Machine& machine, const api::AgentTelemetry& telemetry) {
  machine.telemetry = telemetry;
}

void Fleet::take(Machine&, const api::ReplicaLoading& loading) {
  const auto [pool, launch] = find(loading.replica);
  if (!pool) return;
  pool->brain().on_loading(launch->launch, static_cast<std::uint64_t>(loading.loaded_bytes),
                           static_cast<std::uint64_t>(loading.total_bytes), pool->now());
  pool->pump();
}

void Fleet::take(Machine& machine, const api::ReplicaReady& ready) {
  const auto [pool, launch] = find(ready.replica);
  if (!pool || launch->dropped) return;
  log::info("pool {}: the replica on {} is ready ({}, width {})", pool->alias(), launch->node.str(),
            ready.info.description, ready.info.width);
  pool->note_model(ready.info);
  if (ready.info.protocol != api::kRunnerProtocol) {
    pool->brain().on_start_failed(
        launch->launch,
        fmt::format("the runner speaks protocol {}, this gateway {}; install the same version",
                    ready.info.protocol, api::kRunnerProtocol),
        pool->now());
    pool->pump();
    return;
  }
  serve(pool, launch, machine.sockets[ready.replica]);
  pool->brain().on_ready(launch->launch, replica_info(ready.info), pool->now());
  pool->pump();
}

void Fleet::take(Machine& machine, const api::ReplicaExited& exited) {
  machine.sockets.erase(exited.replica);
  for (const auto& pool : pools_) pool->note_ended(exited.replica);
  const auto [pool, launch] = find(exited.replica);
  if (!pool) return;
  log::warning("pool {}: the replica on {} ended: {}", pool->alias(), launch->node.str(),
               exited.reason);
  pool->note_log_tail(launch->node, exited.log_tail);
  cluster::Exit end{.reason = exited.reason,
                    .own_fault = exited.own_fault,
                    .named = {},
                    .by_chance = exited.port_taken};
  if (const auto ticket = pool->find_ticket(exited.named)) end.named.push_back(*ticket);
  pool->brain().on_exited(launch->launch, end, pool->now());
  pool->pump();
  pool->erase_launch(launch->launch);
}

void Fleet::serve(const std::shared_ptr<PoolRuntime>& pool,
                  const std::shared_ptr<LaunchRuntime>& launch, const std::string& socket) {
  http::Endpoint endpoint;
  endpoint.unix_path = socket;
  launch->client = std::make_unique<http::Client>(options_.executor, endpoint);
  boost::asio::co_spawn(options_.executor, watch_runner(options_.executor, pool, launch),
                        boost::asio::detached);
}

}  // namespace flotilla::gateway
