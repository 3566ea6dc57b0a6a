#include <fmt/format.h>

#include "gateway/routes_operator.h"
#include "gateway/transfers.h"

// Copies of models between nodes.
namespace flotilla::gateway {
namespace {

using http::PathParams;

Task<http::Response> begin_sync(Service& service, http::Request request, PathParams) {
  auto spec = api::parse_sync(request.body);
  if (!spec) co_return fail(spec.error());
  const auto begun = co_await service.transfers.begin(std::move(*spec));
  if (!begun) co_return fail(begun.error());
  co_return http::json_response(202, api::to_json(*begun));
}

Task<http::Response> list_transfers(Service& service, http::Request, PathParams) {
  co_return http::json_response(200, api::transfers_json(service.transfers.list()));
}

Task<http::Response> show_transfer(Service& service, http::Request, PathParams params) {
  const auto found = service.transfers.find(params["id"]);
  if (!found) co_return fail(found.error());
  co_return http::json_response(200, api::to_json(*found));
}

Task<http::Response> cancel_transfer(Service& service, http::Request, PathParams params) {
  const auto cancelled = service.transfers.cancel(params["id"]);
  if (!cancelled) co_return fail(cancelled.error());
  co_return http::json_response(200, api::to_json(*cancelled));
}

}  // namespace

void add_transfer_routes(http::Router& router, Service& service) {
  add_admin_route(router, service, "POST", "/admin/models/sync", begin_sync);
  add_admin_route(router, service, "GET", "/admin/transfers", list_transfers);
  add_admin_route(router, service, "GET", "/admin/transfers/{id}", show_transfer);
  add_admin_route(router, service, "DELETE", "/admin/transfers/{id}", cancel_transfer);
}

}  // namespace flotilla::gateway
