#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "gateway/doctor.h"
#include "gateway/gather.h"
#include "gateway/node_care.h"
#include "gateway/routes_operator.h"

// Machines: what they say of themselves, and what is done to them by hand.
namespace flotilla::gateway {
namespace {

using http::PathParams;

CareOptions care_of(Service& service) {
  return {.executor = service.executor,
          .clock = &service.clock,
          .control = &service.control,
          .state_dir = service.control.state_dir(),
          .version = service.version};
}

Result<api::NodeSpec> find_node(const Service& service, const std::string& id) {
  for (const api::ClusterSpec& cluster : service.control.clusters()) {
    const std::vector<api::NodeSpec> nodes = service.control.nodes_of(cluster);
    const auto found = std::ranges::find(nodes, id, &api::NodeSpec::id);
    if (found != nodes.end()) return *found;
  }
  return fail(Code::NotFound, fmt::format("no cluster has a node \"{}\"", id));
}

api::NodeTelemetry telemetry_of(const Service& service, const api::NodeSpec& node) {
  const Fleet& fleet = service.control.fleet();
  api::NodeTelemetry out;
  out.status = fleet.status_of(node);
  const auto machine = fleet.find_machine(node);
  if (!machine || !machine->is_up()) return out;
  out.machine = machine->telemetry;
  for (const api::ReplicaUsage& usage : machine->telemetry.replicas) {
    for (const auto& pool : service.control.pools()) {
      const auto launch = pool->find_wire(usage.replica);
      if (!launch) continue;
      out.replicas.push_back(
          {.alias = pool->alias(), .node = launch->node.str(), .rss_bytes = usage.rss_bytes});
    }
  }
  return out;
}

Task<http::Response> list_nodes(Service& service, http::Request, PathParams) {
  co_return http::json_response(200, nodes_now(service));
}

Task<http::Response> show_telemetry(Service& service, http::Request, PathParams params) {
  const auto node = find_node(service, params["n"]);
  if (!node) co_return fail(node.error());
  co_return http::json_response(200, api::to_json(telemetry_of(service, *node)));
}

Task<http::Response> test(Service& service, http::Request request, PathParams) {
  auto node = api::parse_node(request.body);
  if (!node) co_return fail(node.error());
  // A key is never shown: a test of a stored node that leaves it out means the one that is stored.
  const auto known = find_node(service, node->id);
  if (known && node->api_key.empty() && known->url == node->url) node->api_key = known->api_key;
  const auto tested = co_await test_node(care_of(service), std::move(*node));
  if (!tested) co_return fail(tested.error());
  co_return http::json_response(200, api::to_json(*tested));
}

Task<http::Response> trust(Service& service, http::Request request, PathParams params) {
  auto node = find_node(service, params["n"]);
  if (!node) co_return fail(node.error());
  auto order = api::parse_trust(request.body);
  if (!order) co_return fail(order.error());
  const auto answer = co_await trust_node(care_of(service), std::move(*node), std::move(*order));
  if (!answer) co_return fail(answer.error());
  co_return http::json_response(200, api::to_json(*answer));
}

Task<http::Response> bootstrap(Service& service, http::Request, PathParams params) {
  auto node = find_node(service, params["n"]);
  if (!node) co_return fail(node.error());
  const auto answer = co_await bootstrap_node(care_of(service), std::move(*node));
  if (!answer) co_return fail(answer.error());
  co_return http::json_response(200, api::to_json(*answer));
}

Task<http::Response> doctor(Service& service, http::Request request, PathParams) {
  const std::string only = request.query("cluster").value_or("");
  if (!only.empty() && service.control.find_cluster(only) == nullptr)
    co_return fail(Code::NotFound, fmt::format("there is no cluster \"{}\"", only));
  std::vector<Awaitable<std::vector<api::Finding>>> works;
  for (const api::ClusterSpec& cluster : service.control.clusters())
    if (only.empty() || cluster.id == only)
      works.push_back(examine(service.control, cluster, service.knobs.queue_max));
  const auto reports = co_await gather(service.executor, std::move(works));
  std::vector<api::Finding> findings = examine_server(service);
  for (const auto& report : reports) findings.insert(findings.end(), report.begin(), report.end());
  co_return http::json_response(200, api::to_json(findings));
}

}  // namespace

std::string nodes_now(const Service& service) {
  std::set<std::string> seen;
  std::vector<api::NodeTelemetry> nodes;
  for (const api::ClusterSpec& cluster : service.control.clusters()) {
    for (const api::NodeSpec& node : service.control.nodes_of(cluster))
      if (seen.insert(node.id).second) nodes.push_back(telemetry_of(service, node));
  }
  return api::nodes_json(nodes);
}

void add_node_routes(http::Router& router, Service& service) {
  add_admin_route(router, service, "GET", "/admin/nodes", list_nodes);
  add_admin_route(router, service, "GET", "/admin/nodes/{n}/telemetry", show_telemetry);
  add_admin_route(router, service, "GET", "/admin/doctor", doctor);
  add_admin_route(router, service, "POST", "/admin/nodes/test", test);
  add_admin_route(router, service, "POST", "/admin/nodes/{n}/trust", trust);
  add_admin_route(router, service, "POST", "/admin/nodes/{n}/bootstrap", bootstrap);
}

}  // namespace flotilla::gateway
