#include "gateway/engine_watch.h"

#include <algorithm>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "gateway/engine_probe.h"

namespace flotilla::gateway {
namespace {

constexpr std::chrono::milliseconds kComesUp{200};
constexpr std::chrono::milliseconds kGrowthSeen{2000};  // agents look each second
constexpr std::chrono::milliseconds kHealthPeriodMax{5000};
constexpr int kNotFoundMax = 4;

bool is_over(const PoolRuntime& pool, const std::shared_ptr<LaunchRuntime>& launch) {
  return launch->dropped || pool.find_launch(launch->launch) != launch;
}

Awaitable<void> pause(Executor executor, std::chrono::milliseconds time) {
  boost::asio::steady_timer timer(executor, time);
  co_await timer.async_wait(kAwait);
}

std::uint64_t loaded_bytes(const PoolRuntime& pool, const LaunchRuntime& launch) {
  for (const cluster::ReplicaStatus& one : pool.brain().snapshot(pool.now()).replicas)
    if (one.index == launch.launch.replica) return one.loaded_bytes;
  return 0;
}

// mlx_lm.server and Ollama listen before they have loaded, and answer the first request late: one
// that an agent starts is asked again for as long as its memory grows.
Task<cluster::ReplicaInfo> meet_loaded(std::shared_ptr<PoolRuntime> pool,
                                       std::shared_ptr<LaunchRuntime> launch, EngineProbe& probe,
                                       bool loads) {
  const Executor executor = co_await boost::asio::this_coro::executor;
  for (;;) {
    const std::uint64_t before = loaded_bytes(*pool, *launch);
    auto info = co_await probe.meet(launch->generation->width);
    if (info || !loads || is_over(*pool, launch)) co_return info;
    co_await pause(executor, kGrowthSeen);
    if (is_over(*pool, launch) || loaded_bytes(*pool, *launch) <= before) co_return info;
  }
}

// mlx_lm.server says 404 of whatever went wrong with a request, and its health check knows nothing
// of it. It may be the requests: one that is known to be right tells. Beside the health checks,
// since an answer may take longer than a hang.
Awaitable<void> look_again(std::shared_ptr<PoolRuntime> pool,
                           std::shared_ptr<LaunchRuntime> launch) {
  const Executor executor = co_await boost::asio::this_coro::executor;
  const int refused = launch->not_found;
  EngineProbe probe(executor, *launch->client, *launch->engine);
  const auto answered = co_await probe.meet(1);
  launch->doubted = false;
  if (is_over(*pool, launch)) co_return;
  const bool answers = answered.has_value() || launch->not_found == 0;
  launch->not_found = 0;
  if (answers) co_return;
  std::string reason = fmt::format("it answered {} requests in a row with 404, then {}", refused,
                                   answered.error().message);
  log::warning("pool {}: the engine on {} is given up: {}", pool->alias(), launch->node.str(),
               reason);
  pool->brain().on_hang(launch->launch, std::move(reason), pool->now());
  pool->pump();
}

}  // namespace

Result<EngineWay> way_to(const api::NodeSpec& node) {
  auto parsed = http::parse_url(node.url);
  if (!parsed) return fail(parsed.error());
  EngineWay way{.endpoint = std::move(*parsed)};
  if (way.endpoint.base_path.empty()) way.endpoint.base_path = "/v1";  // as people write it
  way.endpoint.address = node.address;
  return way;
}

api::ForeignEngine engine_at(const api::NodeSpec& node) {
  return {.name = {},
          .where = node.url,
          .api_key = node.api_key,
          .model = node.upstream_model,
          .health = {},
          .lacks = {}};
}

Awaitable<void> serve_engine(std::shared_ptr<PoolRuntime> pool,
                             std::shared_ptr<LaunchRuntime> launch, EngineWay way,
                             std::chrono::milliseconds watchdog) {
  const Executor executor = co_await boost::asio::this_coro::executor;
  auto client = std::make_unique<http::Client>(executor, way.endpoint);
  EngineProbe probe(executor, *client, *launch->engine);
  // Its list says what it is. One that an agent starts comes up; one elsewhere is there or not.
  for (;;) {
    const auto there = co_await probe.health();
    if (is_over(*pool, launch)) co_return;
    if (there) break;
    if (!way.ours_to_start) {
      pool->brain().on_start_failed(launch->launch, there.error().message, pool->now());
      pool->pump();
      co_return;
    }
    co_await pause(executor, kComesUp);
    if (is_over(*pool, launch)) co_return;
  }
  auto info = co_await meet_loaded(pool, launch, probe, way.ours_to_start);
  if (is_over(*pool, launch)) co_return;
  if (!info) {
    // on_hang: where it is ours it runs, and has to be ended.
    pool->brain().on_hang(launch->launch, info.error().message, pool->now());
    pool->pump();
    co_return;
  }
  info->context = launch->generation->load.context;
  info->model_bytes = static_cast<std::uint64_t>(way.model_bytes);
  log::info("pool {}: {} on {} is ready (width {})", pool->alias(),
            launch->engine->name.empty() ? "the engine" : launch->engine->name, launch->node.str(),
            info->width);
  // The probe keeps a reference, so the client stays where it is.
  launch->client = std::move(client);
  launch->heard = pool->now();
  pool->brain().on_ready(launch->launch, *info, pool->now());
  pool->pump();

  const auto period = std::min(watchdog / 3, kHealthPeriodMax);
  Instant told = pool->now();
  while (!is_over(*pool, launch)) {
    co_await pause(executor, period);
    if (is_over(*pool, launch)) break;
    if (launch->not_found >= kNotFoundMax && !std::exchange(launch->doubted, true))
      boost::asio::co_spawn(executor, look_again(pool, launch), boost::asio::detached);
    const auto alive = co_await probe.health();
    if (is_over(*pool, launch)) break;
    if (alive || launch->heard > told) {
      told = pool->now();
      pool->brain().on_heartbeat(launch->launch, {}, told);
    } else if (!way.ours_to_start && alive.error().reason == "connect") {
      pool->brain().on_hang(launch->launch, alive.error().message, pool->now());
    }
    pool->pump();
  }
}

}  // namespace flotilla::gateway
