#include <functional>
#include <optional>

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "api/admin.h"
#include "api/operations.h"
#include "gateway/history.h"
#include "gateway/routes_operator.h"
#include "gateway/status.h"
#include "gateway/transfers.h"
#include "http/sse.h"

// What is, told as it changes.
namespace flotilla::gateway {
namespace {

using http::Exchange;
using http::PathParams;

constexpr std::chrono::milliseconds kLook{100};         // at most ten events a second
constexpr std::chrono::milliseconds kLiveFigures{500};  // rates and bytes move while work goes on
constexpr std::chrono::seconds kHeartbeat{2};
constexpr std::chrono::seconds kRequestsEvery{1};
constexpr std::size_t kRequestsShown = 50;
constexpr int kEventsShown = 100;

std::string overview(const Service& service) {
  std::vector<api::ClusterStatus> clusters;
  for (const api::ClusterSpec& cluster : service.control.clusters()) {
    clusters.push_back(cluster_status(service.control, cluster));
  }
  std::string json = api::overview_json(service.version, service.endpoint, clusters);
  json.back() = ',';  // more members
  return fmt::format(R"({}"login":{},"keys":{},"history":{},"transfers":{}}})", json,
                     service.guard.has_token(), !service.keys.empty(),
                     service.history.newest_json(), api::transfers_array(service.transfers.list()));
}

bool figures_move(const Service& service) {
  if (service.transfers.running()) return true;
  for (const auto& pool : service.control.pools()) {
    const auto snapshot = pool->brain().snapshot(pool->now());
    if (snapshot.in_flight > 0 || snapshot.tokens_per_s > 0 ||
        snapshot.replicas_live < snapshot.replicas_total)
      return true;
  }
  return false;
}

// What goes beside the state in events of their own names, each when there is something new: what
// machines say of themselves, the latest requests, who did what.
class Beside {
 public:
  Beside(Service& service, Exchange& exchange) : service_(service), exchange_(exchange) {}

  // false: the reader is gone.
  Awaitable<bool> push(Instant now) {
    bool open = true;
    if (now - machines_at_ >= kHeartbeat) {
      machines_at_ = now;
      std::string json = nodes_now(service_);
      open = co_await write("nodes", machines_, std::move(json));
    }
    if (open && now - requests_at_ >= kRequestsEvery) {
      requests_at_ = now;
      std::string json = requests_now(service_, kRequestsShown);
      open = co_await write("requests", requests_, std::move(json));
    }
    const std::uint64_t noted = service_.control.events_noted();
    if (open && events_ != noted) {
      events_ = noted;
      auto json = co_await stored_events(service_, kEventsShown);
      if (json) open = co_await write("audit", audit_, std::move(*json));
    }
    co_return open;
  }

 private:
  Awaitable<bool> write(const char* name, std::string& last, std::string json) {
    if (json == last) co_return true;
    last = std::move(json);
    const std::string event = http::sse_event(last, name);
    co_return co_await exchange_.write(event);
  }

  Service& service_;
  Exchange& exchange_;
  Instant machines_at_{};
  Instant requests_at_{};
  std::optional<std::uint64_t> events_;
  std::string machines_;
  std::string requests_;
  std::string audit_;
};

// Pushes `text` on change, at most every 100 ms, and every 2 s at least, until the reader goes away
// the log-in ends or the server shuts down. `text` empty = the thing is gone.
Awaitable<void> push(Service& service, Exchange& exchange, std::function<std::string()> text,
                     std::unique_ptr<Beside> beside) {
  boost::asio::steady_timer timer(service.executor);
  exchange.on_client_gone([&timer] { timer.cancel(); });
  http::Headers headers = http::event_stream_headers();
  bool open = co_await exchange.start(200, std::move(headers));
  std::uint64_t shown = ~service.control.version();
  Instant pushed{};
  while (open && !exchange.client_gone() && !service.draining) {
    const Instant now = service.clock.now();
    if (service.guard.login_ended(exchange.request(), now)) break;
    const bool changed = service.control.version() != shown;
    const bool moved = now - pushed >= kLiveFigures && figures_move(service);
    if (changed || moved || now - pushed >= kHeartbeat) {
      shown = service.control.version();
      pushed = now;
      const std::string json = text();
      if (json.empty()) break;
      const std::string event = http::sse_event(json);
      open = co_await exchange.write(event);
    }
    if (open && beside) open = co_await beside->push(now);
    timer.expires_after(kLook);
    co_await timer.async_wait(kAwait);
  }
  if (open) co_await exchange.finish();
}

Awaitable<void> stream_cluster(Service& service, Exchange& exchange, PathParams params) {
  const std::string id = params["c"];
  if (service.control.find_cluster(id) == nullptr) {
    Error error = no_cluster(id);
    co_await answer_problem(exchange, std::move(error));
    co_return;
  }
  std::function<std::string()> text = [&service, id] {
    const api::ClusterSpec* cluster = service.control.find_cluster(id);
    return cluster == nullptr ? std::string()
                              : api::status_json(cluster_status(service.control, *cluster));
  };
  co_await push(service, exchange, std::move(text), nullptr);
}

Awaitable<void> stream_all(Service& service, Exchange& exchange, PathParams) {
  std::function<std::string()> text = [&service] { return overview(service); };
  auto beside = std::make_unique<Beside>(service, exchange);
  co_await push(service, exchange, std::move(text), std::move(beside));
}

}  // namespace

void add_stream_routes(http::Router& router, Service& service) {
  add_admin_stream(router, service, "/admin/clusters/{c}/status/stream", stream_cluster);
  add_admin_stream(router, service, "/admin/stream", stream_all);
}

}  // namespace flotilla::gateway
