#include <fmt/format.h>

#include "api/admin.h"
#include "api/declared.h"
#include "api/error_body.h"
#include "gateway/routes.h"
#include "gateway/status.h"

namespace flotilla::gateway {
namespace {

using http::Exchange;
using http::PathParams;

Awaitable<void> administer(Service& service, Exchange& exchange, PathParams params,
                           AdminRoute route) {
  const auto may = may_administer(service, exchange.request());
  if (!may) {
    Error error = may.error();
    co_await answer_problem(exchange, std::move(error));
    co_return;
  }
  http::Request request = exchange.take_request();
  store::StoredEvent event;
  event.at_unix_ms = service.clock.unix_ms();
  event.who = fmt::format("{}{}", service.guard.way_in(request), request.peer);
  event.action = fmt::format("{} {}", request.method, request.path());
  const bool changes = request.method != "GET";
  auto response = co_await route(service, std::move(request), std::move(params));
  event.status = response ? response->status : api::http_status(response.error().code);
  if (!response) event.detail = response.error().message;
  if (changes) service.control.note_event(std::move(event));
  if (!response) {
    Error error = response.error();
    co_await answer_problem(exchange, std::move(error));
    co_return;
  }
  co_await exchange.respond(std::move(*response));
}

Task<http::Response> list_clusters(Service& service, http::Request, PathParams) {
  co_return http::json_response(200, api::clusters_json(service.control.clusters()));
}

Task<http::Response> show_cluster(Service& service, http::Request, PathParams params) {
  const api::ClusterSpec* cluster = service.control.find_cluster(params["c"]);
  if (cluster == nullptr) co_return fail(no_cluster(params["c"]));
  co_return http::json_response(200, api::to_json(*cluster, api::Secrets::Hidden));
}

Task<http::Response> show_declared(Service& service, http::Request, PathParams) {
  api::Declared declared;
  declared.clusters = service.control.clusters();
  for (const auto& pool : service.control.pools())
    declared.pools.push_back({.cluster = pool->options().cluster, .load = pool->generation().load});
  co_return http::json_response(200, api::to_json(declared));
}

Task<http::Response> put_cluster(Service& service, http::Request request, PathParams params) {
  auto spec = api::parse_cluster(request.body, params["c"]);
  if (!spec) co_return fail(spec.error());
  const bool known = service.control.find_cluster(spec->id) != nullptr;
  auto put = co_await service.control.put_cluster(std::move(*spec));
  if (!put) co_return fail(put.error());
  co_return http::json_response(known ? 200 : 201, api::to_json(*put, api::Secrets::Hidden));
}

Task<http::Response> delete_cluster(Service& service, http::Request, PathParams params) {
  auto deleted = co_await service.control.delete_cluster(params["c"]);
  if (!deleted) co_return fail(deleted.error());
  http::Response response;
  response.status = 204;
  co_return response;
}

Task<http::Response> load(Service& service, http::Request request, PathParams params) {
  if (service.draining) co_return fail(Code::Unavailable, "the server is shutting down");
  auto spec = api::parse_load(request.body);
  if (!spec) co_return fail(spec.error());
  auto loaded = co_await service.control.load(params["c"], std::move(*spec));
  if (!loaded) co_return fail(loaded.error());
  const api::LoadAnswer answer{.cluster = params["c"],
                               .load_s = loaded->load_s,
                               .loaded = loaded->complete,
                               .pool = pool_status(*loaded->pool, service.control.fleet())};
  co_return http::json_response(loaded->complete ? 200 : 202, api::to_json(answer));
}

Task<http::Response> unload(Service& service, http::Request request, PathParams params) {
  auto spec = api::parse_unload(request.body);
  if (!spec) co_return fail(spec.error());
  auto alias = co_await service.control.unload(params["c"], std::move(*spec));
  if (!alias) co_return fail(alias.error());
  co_return http::json_response(
      200, fmt::format(R"({{"unloaded":true,"cluster":"{}","alias":"{}"}})", params["c"], *alias));
}

Task<http::Response> reload(Service& service, http::Request request, PathParams params) {
  if (service.draining) co_return fail(Code::Unavailable, "the server is shutting down");
  auto spec = api::parse_reload(request.body);
  if (!spec) co_return fail(spec.error());
  auto loaded = co_await service.control.reload(params["c"], std::move(*spec));
  if (!loaded) co_return fail(loaded.error());
  const api::LoadAnswer answer{.cluster = params["c"],
                               .load_s = loaded->load_s,
                               .loaded = true,
                               .pool = pool_status(*loaded->pool, service.control.fleet())};
  co_return http::json_response(200, api::to_json(answer));
}

Task<http::Response> order_replica(Service& service, http::Request, PathParams params) {
  const auto action = api::parse_replica_action(params["action"]);
  if (!action) {
    co_return fail(Code::NotFound, fmt::format("a replica takes restart, drain or resume, not {}",
                                               params["action"]));
  }
  Control::ReplicaOrder order{
      .cluster = params["c"], .alias = params["alias"], .node = params["node"], .action = *action};
  const auto pool = co_await service.control.order_replica(std::move(order));
  if (!pool) co_return fail(pool.error());
  const api::PoolStatus status = pool_status(**pool, service.control.fleet());
  api::ReplicaStatus about;
  for (const api::ReplicaStatus& replica : status.replicas) {
    if (replica.node == params["node"]) about = replica;
  }
  co_return http::json_response(200, api::replica_action_json(status.alias, *action, about));
}

Task<http::Response> show_status(Service& service, http::Request, PathParams params) {
  const api::ClusterSpec* cluster = service.control.find_cluster(params["c"]);
  if (cluster == nullptr) co_return fail(no_cluster(params["c"]));
  co_return http::json_response(200, api::status_json(cluster_status(service.control, *cluster)));
}

Awaitable<void> administer_stream(Service& service, Exchange& exchange, PathParams params,
                                  AdminStream stream) {
  const auto may = may_administer(service, exchange.request());
  if (!may) {
    Error error = may.error();
    co_await answer_problem(exchange, std::move(error));
    co_return;
  }
  co_await stream(service, exchange, std::move(params));
}

}  // namespace

Error no_cluster(const std::string& id) {
  return Error{.code = Code::NotFound,
               .message = fmt::format("there is no cluster \"{}\"; PUT /admin/clusters/{} makes it",
                                      id, id)};
}

Awaitable<void> answer_problem(Exchange& exchange, Error error) {
  http::Response response =
      http::json_response(api::http_status(error.code), api::problem_body(error));
  response.headers.set("Content-Type", std::string(api::kProblemContentType));
  http::add_error_fields(response.headers, error);
  co_await exchange.respond(std::move(response));
}

void add_admin_route(http::Router& router, Service& service, const char* method,
                     const char* pattern, AdminRoute route) {
  router.add(method, pattern, [&service, route](Exchange& exchange, PathParams params) {
    return administer(service, exchange, std::move(params), route);
  });
}

void add_admin_stream(http::Router& router, Service& service, const char* pattern,
                      AdminStream stream) {
  router.add("GET", pattern, [&service, stream](Exchange& exchange, PathParams params) {
    return administer_stream(service, exchange, std::move(params), stream);
  });
}

void add_admin_routes(http::Router& router, Service& service) {
  const auto add = [&](const char* method, const char* pattern, AdminRoute route) {
    add_admin_route(router, service, method, pattern, route);
  };
  add("GET", "/admin/declared", show_declared);
  add("GET", "/admin/clusters", list_clusters);
  add("GET", "/admin/clusters/{c}", show_cluster);
  add("PUT", "/admin/clusters/{c}", put_cluster);
  add("DELETE", "/admin/clusters/{c}", delete_cluster);
  add("POST", "/admin/clusters/{c}/load", load);
  add("POST", "/admin/clusters/{c}/unload", unload);
  add("POST", "/admin/clusters/{c}/reload", reload);
  add("POST", "/admin/clusters/{c}/pools/{alias}/replicas/{node}/{action}", order_replica);
  add("GET", "/admin/clusters/{c}/status", show_status);
}

}  // namespace flotilla::gateway
