#include "gateway/runner_watch.h"

#include <boost/asio/steady_timer.hpp>

#include "api/runner_protocol.h"
#include "http/sse.h"

namespace flotilla::gateway {
namespace {

constexpr std::chrono::seconds kHeadLimit{10};
constexpr std::chrono::seconds kReadLimit{60};
constexpr std::chrono::milliseconds kAgain{500};

cluster::Heartbeat heartbeat_of(const api::RunnerEvent& event) {
  return cluster::Heartbeat{.step = event.step,
                            .step_max = std::chrono::duration_cast<Duration>(
                                std::chrono::duration<double, std::milli>(event.step_ms_max)),
                            .running = event.running,
                            .waiting = event.waiting,
                            .tokens_per_s = event.tokens_per_s,
                            .step_overhead = event.step_overhead,
                            .resident_bytes = event.resident_bytes,
                            .trimmed = event.trimmed};
}

Awaitable<void> read_events(PoolRuntime& pool, LaunchRuntime& launch) {
  http::Request request;
  request.target = "/runner/events";
  Upstream upstream;
  const UpstreamScope scope(launch, upstream);
  const auto opened =
      co_await launch.client->open(std::move(request), kHeadLimit, upstream.opening());
  if (!opened) co_return;
  http::ClientStream* stream = opened->get();
  upstream.set_stream(stream);
  http::SseSplitter splitter;
  while (!launch.dropped) {
    const auto bytes = co_await stream->read(kReadLimit);
    if (!bytes || bytes->empty()) break;
    splitter.feed(*bytes, [&](std::string_view block) {
      if (const auto event = api::parse_runner_event(http::sse_data(block))) {
        launch.told = *event;
        pool.brain().on_heartbeat(launch.launch, heartbeat_of(*event), pool.now());
      }
    });
    pool.pump();
  }
}

}  // namespace

Awaitable<void> watch_runner(Executor executor, std::shared_ptr<PoolRuntime> pool,
                             std::shared_ptr<LaunchRuntime> launch) {
  boost::asio::steady_timer timer(executor);
  while (!launch->dropped && pool->find_launch(launch->launch) == launch) {
    co_await read_events(*pool, *launch);
    timer.expires_after(kAgain);
    co_await timer.async_wait(kAwait);
  }
}

}  // namespace flotilla::gateway
