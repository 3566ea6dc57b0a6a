#include <algorithm>
#include <charconv>

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "api/operations.h"
#include "gateway/routes_operator.h"

// Settings, the audit, logs and conversations.
namespace flotilla::gateway {
namespace {

using http::Exchange;
using http::PathParams;

constexpr int kEventsListed = 200;
constexpr int kEventsMax = 10'000;
constexpr std::size_t kSessionsMax = 1000;
constexpr std::int64_t kLogTail = 64 << 10;
constexpr std::chrono::seconds kAskAgent{10};
constexpr std::chrono::milliseconds kFollow{300};

Task<http::Response> show_settings(Service& service, http::Request, PathParams) {
  co_return http::json_response(200, api::settings_json(service.settings.list()));
}

Task<http::Response> put_settings(Service& service, http::Request request, PathParams) {
  const auto changes = api::parse_settings(request.body);
  if (!changes) co_return fail(changes.error());
  if (auto may = service.settings.check(*changes); !may) co_return fail(may.error());
  const auto written = co_await service.control.store_settings(Settings::texts(*changes));
  if (!written) co_return fail(written.error());
  service.settings.apply(*changes);
  service.control.apply_settings();
  co_return http::json_response(200, api::settings_json(service.settings.list()));
}

Task<http::Response> list_events(Service& service, http::Request request, PathParams) {
  int limit = kEventsListed;
  if (const auto asked = request.query("limit"))
    std::from_chars(asked->data(), asked->data() + asked->size(), limit);
  auto events = co_await stored_events(service, std::clamp(limit, 1, kEventsMax));
  if (!events) co_return fail(events.error());
  co_return http::json_response(200, std::move(*events));
}

Task<http::Response> list_sessions(Service& service, http::Request, PathParams) {
  std::vector<api::SessionShown> sessions;
  for (const auto& pool : service.control.pools()) {
    for (const auto& one : pool->brain().sessions(kSessionsMax, pool->now())) {
      sessions.push_back({.id = fmt::format("{:016x}", one.id),
                          .alias = pool->alias(),
                          .node = one.node.str(),
                          .tokens = one.tokens,
                          .idle_s = to_s(one.idle),
                          .named = one.named});
    }
  }
  co_return http::json_response(200, api::sessions_json(sessions));
}

Task<http::Response> forget_session(Service& service, http::Request, PathParams params) {
  const std::string& text = params["id"];
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id, 16);
  bool found = false;
  if (error == std::errc{} && end == text.data() + text.size()) {
    for (const auto& pool : service.control.pools())
      found = pool->brain().forget_session(id) || found;
  }
  if (!found) co_return fail(Code::NotFound, fmt::format("there is no session \"{}\"", text));
  http::Response response;
  response.status = 204;
  co_return response;
}

// Which log is meant, and whose agent has it.
struct LogPlace {
  api::ReadLog log;
  std::shared_ptr<Machine> machine;
};

// A node, and a pool where it has several.
Result<LogPlace> which_log(const Service& service, const http::Request& request) {
  LogPlace place;
  api::ReadLog& out = place.log;
  out.offset = -kLogTail;
  out.node = request.query("node").value_or("");
  out.alias = request.query("replica").value_or("");
  if (out.node.empty()) {
    return fail(Error{.code = Code::InvalidArgument,
                      .message = "node is missing: /admin/logs?node=NODE&replica=POOL",
                      .param = "node"});
  }
  std::string pools;
  int count = 0;
  for (const auto& pool : service.control.pools()) {
    const api::NodeSpec* node = pool->node_spec(NodeId(out.node));
    if (node == nullptr || (!out.alias.empty() && pool->alias() != out.alias)) continue;
    if (!node->has_agent()) {
      return fail(Code::Unprocessable,
                  fmt::format("node {} is a server of another kind; its log is there", out.node));
    }
    ++count;
    place.machine = service.control.fleet().find_machine(*node);
    pools += (pools.empty() ? "" : ", ") + pool->alias();
  }
  if (count == 0) {
    return fail(Code::NotFound, fmt::format("no pool{}{} has a replica on a node \"{}\"",
                                            out.alias.empty() ? "" : " ", out.alias, out.node));
  }
  if (count > 1) {
    return fail(Error{.code = Code::InvalidArgument,
                      .message = fmt::format(
                          "node {} has replicas of {}; say which with replica=", out.node, pools),
                      .param = "replica"});
  }
  out.alias = pools;
  if (!place.machine)
    return fail(Code::Unavailable, fmt::format("node {} is not linked to", out.node));
  return place;
}

// Its last 64 KiB as text; with follow=1 also what comes, until the reader goes away.
Awaitable<void> show_log(Service& service, Exchange& exchange, PathParams) {
  auto wanted = which_log(service, exchange.request());
  const std::string follow = exchange.request().query("follow").value_or("");
  const bool follows = !follow.empty() && follow != "0" && follow != "false";
  if (!wanted) {
    Error error = wanted.error();
    co_await answer_problem(exchange, std::move(error));
    co_return;
  }
  boost::asio::steady_timer timer(service.executor);
  exchange.on_client_gone([&timer] { timer.cancel(); });
  while (!exchange.client_gone() && !service.draining) {
    api::ReadLog piece = wanted->log;
    const auto text = co_await wanted->machine->link->read_log(std::move(piece), kAskAgent);
    if (!exchange.started() && (!text || !text->error.empty())) {
      Error error = text ? Error{.code = Code::NotFound, .message = text->error} : text.error();
      co_await answer_problem(exchange, std::move(error));
      co_return;
    }
    if (!text) break;
    if (!exchange.started()) {
      http::Headers headers;
      headers.add("Content-Type", "text/plain; charset=utf-8");
      headers.add("Cache-Control", "no-store");
      headers.add("X-Content-Type-Options", "nosniff");
      const bool open = co_await exchange.start(200, std::move(headers));
      if (!open) co_return;
    }
    wanted->log.offset = text->next;
    if (!text->text.empty()) {
      const bool open = co_await exchange.write(text->text);
      if (!open) co_return;
      continue;
    }
    if (!follows || service.guard.login_ended(exchange.request(), service.clock.now())) break;
    timer.expires_after(kFollow);
    co_await timer.async_wait(kAwait);
  }
  if (exchange.started() && !exchange.client_gone()) co_await exchange.finish();
}

}  // namespace

Task<std::string> stored_events(Service& service, int most) {
  const auto stored = co_await service.control.events(most);
  if (!stored) co_return fail(stored.error());
  std::vector<api::EventShown> events;
  for (const store::StoredEvent& event : *stored) {
    events.push_back({.at_unix_ms = event.at_unix_ms,
                      .who = event.who,
                      .action = event.action,
                      .status = event.status,
                      .detail = event.detail});
  }
  co_return api::events_json(events);
}

void add_operation_routes(http::Router& router, Service& service) {
  add_admin_route(router, service, "GET", "/admin/settings", show_settings);
  add_admin_route(router, service, "PUT", "/admin/settings", put_settings);
  add_admin_route(router, service, "GET", "/admin/events", list_events);
  add_admin_route(router, service, "GET", "/admin/sessions", list_sessions);
  add_admin_route(router, service, "DELETE", "/admin/sessions/{id}", forget_session);
  add_admin_stream(router, service, "/admin/logs", show_log);
}

}  // namespace flotilla::gateway
