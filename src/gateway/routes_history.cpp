#include <charconv>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "gateway/history.h"
#include "gateway/metrics_now.h"
#include "gateway/routes_operator.h"

namespace flotilla::gateway {
namespace {

constexpr std::chrono::seconds kRangeMax{24 * 3600};

// "900", "15m", "6h": from one step to a day.
Result<std::chrono::seconds> parse_range(const std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [at, wrong] = std::from_chars(text.data(), end, number);
  const std::string_view unit(at, static_cast<std::size_t>(end - at));
  const std::int64_t scale = unit == "h" ? 3600 : unit == "m" ? 60 : 1;
  const bool good = wrong == std::errc() && (unit.empty() || unit == "s" || scale > 1) &&
                    number >= 1 && number <= kRangeMax.count() / scale &&
                    number * scale >= History::kStep.count();
  if (good) return std::chrono::seconds(number * scale);
  return fail(Error{
      .code = Code::InvalidArgument,
      .message = fmt::format("range is a time from 5s to 24h, as 900, 15m or 6h, not \"{}\"", text),
      .param = "range"});
}

Task<http::Response> show_history(Service& service, http::Request request, http::PathParams) {
  const auto range = parse_range(request.query("range").value_or("15m"));
  if (!range) co_return fail(range.error());
  const std::string pool = request.query("pool").value_or("");
  if (!pool.empty() && !service.history.knows(pool)) {
    co_return fail(Code::NotFound, fmt::format("nothing is known of a pool \"{}\"", pool));
  }
  const std::string by = request.query("by").value_or("pool");
  if (by != "pool" && by != "replica") {
    co_return fail(Error{.code = Code::InvalidArgument,
                         .message = fmt::format("by is pool or replica, not \"{}\"", by),
                         .param = "by"});
  }
  const History::Wanted wanted{.pool = pool, .replicas = by == "replica", .range = *range};
  co_return http::json_response(
      200, service.history.series_json(wanted, service.clock.unix_ms() / 1000));
}

Awaitable<void> metrics(Service& service, http::Exchange& exchange) {
  const auto may = service.guard.may_observe(exchange.request(), service.clock.now(),
                                             service.clock.unix_ms() / 1000);
  if (!may) {
    Error error = may.error();
    co_await answer_openai_error(exchange, std::move(error));
    co_return;
  }
  http::Response response;
  response.headers.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  response.headers.set("Cache-Control", "no-store");
  response.headers.set("X-Content-Type-Options", "nosniff");
  response.body = metrics_text(service.metrics, service.control, service.version);
  co_await exchange.respond(std::move(response));
}

Awaitable<void> sample(Service& service) {
  boost::asio::steady_timer timer(service.executor);
  for (;;) {
    timer.expires_after(History::kStep);
    const auto [error] = co_await timer.async_wait(kAwait);
    if (error) co_return;
    for (const auto& pool : service.control.pools()) {
      const auto now = pool->brain().snapshot(pool->now());
      const History::Gauges gauges{.queue = static_cast<double>(now.queue_depth),
                                   .in_flight = static_cast<double>(now.in_flight),
                                   .replicas_live = static_cast<double>(now.replicas_live)};
      const std::int64_t unix_s = service.clock.unix_ms() / 1000;
      service.history.close_step({.pool = pool->alias()}, gauges, unix_s);
      for (const cluster::ReplicaStatus& replica : now.replicas) {
        if (replica.state == cluster::ReplicaState::Stopped) continue;
        const History::Gauges its{.queue = static_cast<double>(replica.queued),
                                  .in_flight = static_cast<double>(replica.busy_count),
                                  .replicas_live = replica.live ? 1.0 : 0.0};
        service.history.close_step({.pool = pool->alias(), .node = replica.node.str()}, its,
                                   unix_s);
      }
    }
  }
}

}  // namespace

void add_history_routes(http::Router& router, Service& service) {
  add_admin_route(router, service, "GET", "/admin/history", show_history);
  router.add("GET", "/metrics", [&service](http::Exchange& exchange, http::PathParams) {
    return metrics(service, exchange);
  });
  boost::asio::co_spawn(service.executor, sample(service), boost::asio::detached);
}

}  // namespace flotilla::gateway
