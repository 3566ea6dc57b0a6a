#include "gateway/http_node.h"

#include <algorithm>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "api/foreign.h"

namespace flotilla::gateway {
namespace {

constexpr std::chrono::seconds kProbeLimit{10};
// Well below the 30 s of silence after which an engine counts as hung.
constexpr std::chrono::seconds kHealthPeriodMax{5};
constexpr std::chrono::seconds kAnswerLimit{60};
constexpr std::int64_t kProbeBytesMax = 4 << 20;

http::Request engine_request(const api::NodeSpec& node, std::string method, std::string target) {
  http::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  if (!node.api_key.empty()) request.headers.add("Authorization", "Bearer " + node.api_key);
  return request;
}

// The engine's first model, or why it does not answer.
Task<std::string> list_models(LaunchRuntime& launch) {
  http::Request request = engine_request(*launch.engine, "GET", "/models");
  auto answer = co_await launch.client->fetch(std::move(request), kProbeLimit, kProbeBytesMax);
  if (!answer) co_return fail(answer.error());
  if (answer->status != 200) {
    co_return fail(Code::Unavailable,
                   fmt::format("GET {}/models answered {}", launch.engine->url, answer->status));
  }
  const std::string model = api::first_model(answer->body);
  if (model.empty() && launch.engine->upstream_model.empty()) {
    co_return fail(Code::Unavailable,
                   fmt::format("{}/models lists no model; set upstream_model", launch.engine->url));
  }
  co_return model;
}

// One token, whole.
Awaitable<bool> answers(LaunchRuntime& launch) {
  http::Request request = engine_request(*launch.engine, "POST", "/chat/completions");
  request.headers.add("Content-Type", "application/json");
  request.body = api::probe_chat_body(launch.engine->upstream_model);
  const auto answer =
      co_await launch.client->fetch(std::move(request), kAnswerLimit, kProbeBytesMax);
  co_return answer.has_value() && answer->status == 200;
}

Task<cluster::ReplicaInfo> probe(LaunchRuntime& launch, int width) {
  using namespace boost::asio::experimental::awaitable_operators;
  auto model = co_await list_models(launch);
  if (!model) co_return fail(model.error());
  if (launch.engine->upstream_model.empty()) launch.engine->upstream_model = *model;
  const bool answered = co_await answers(launch);
  if (!answered) {
    co_return fail(Code::Unavailable,
                   fmt::format("{} does not answer a one-token request", launch.engine->url));
  }
  cluster::ReplicaInfo info;
  info.external = true;
  if (width > 1) {
    const auto [first, second] = co_await (answers(launch) && answers(launch));
    info.width = first && second ? width : 1;
    if (info.width == 1)
      info.batch_reason = "the engine did not answer two requests at the same time";
  }
  co_return info;
}

bool is_over(const PoolRuntime& pool, const std::shared_ptr<LaunchRuntime>& launch) {
  return launch->dropped || pool.find_launch(launch->launch) != launch;
}

}  // namespace

Awaitable<void> serve_http_node(std::shared_ptr<PoolRuntime> pool,
                                std::shared_ptr<LaunchRuntime> launch,
                                std::chrono::seconds period) {
  const Executor executor = co_await boost::asio::this_coro::executor;
  auto endpoint = http::parse_url(launch->engine->url);
  if (!endpoint) {
    pool->brain().on_start_failed(launch->launch, endpoint.error().message, pool->now());
    pool->pump();
    co_return;
  }
  if (endpoint->base_path.empty())
    endpoint->base_path = "/v1";  // http://box:8080 as people write it
  launch->client = std::make_unique<http::Client>(executor, *endpoint);
  const auto info = co_await probe(*launch, launch->generation->width);
  if (is_over(*pool, launch)) co_return;
  if (!info) {
    pool->brain().on_start_failed(launch->launch, info.error().message, pool->now());
    pool->pump();
    co_return;
  }
  pool->brain().on_ready(launch->launch, *info, pool->now());
  pool->pump();

  boost::asio::steady_timer timer(executor);
  while (!is_over(*pool, launch)) {
    timer.expires_after(std::min(period, kHealthPeriodMax));
    co_await timer.async_wait(kAwait);
    if (is_over(*pool, launch)) break;
    const auto alive = co_await list_models(*launch);
    if (is_over(*pool, launch)) break;
    if (alive) {
      pool->brain().on_heartbeat(launch->launch, {}, pool->now());
      pool->pump();
      continue;
    }
    pool->brain().on_hang(launch->launch, alive.error().message, pool->now());
    pool->pump();
  }
}

}  // namespace flotilla::gateway
