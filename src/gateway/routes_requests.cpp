#include <charconv>

#include <fmt/format.h>

#include "api/error_body.h"
#include "api/request_record.h"
#include "gateway/routes_operator.h"

namespace flotilla::gateway {
namespace {

using http::Exchange;
using http::PathParams;

constexpr std::size_t kListed = 100;

Error unknown_request(const std::string& id) {
  return Error{.code = Code::NotFound,
               .message = fmt::format("there is no request \"{}\" among the last 10,000", id),
               .reason = "request_not_found"};
}

// ?limit=N, at most all there are.
std::size_t limit_of(const http::Request& request) {
  const std::string_view target = request.target;
  const auto at = target.find("limit=");
  std::size_t limit = kListed;
  if (at != std::string_view::npos)
    std::from_chars(target.data() + at + 6, target.data() + target.size(), limit);
  return limit;
}

Task<http::Response> list_requests(Service& service, http::Request request, PathParams) {
  co_return http::json_response(200, requests_now(service, limit_of(request)));
}

Task<http::Response> show_request(Service& service, http::Request, PathParams params) {
  const auto trace = service.requests.find(params["id"]);
  if (!trace) co_return fail(unknown_request(params["id"]));
  co_return http::json_response(200, api::to_json(trace->record(), api::Viewer::Operator));
}

Task<http::Response> cancel_request(Service& service, http::Request, PathParams params) {
  const auto trace = service.requests.find(params["id"]);
  if (!trace) co_return fail(unknown_request(params["id"]));
  if (!trace->cancel()) {
    co_return fail(Code::Conflict, fmt::format("request {} has ended already", params["id"]));
  }
  co_return http::json_response(200, R"({"cancelled":true})");
}

// One's own, and nobody else's: whose it is not learns no more than that it is not there.
Awaitable<void> show_own_request(Service& service, Exchange& exchange, std::string id) {
  const auto may = may_enter(service, exchange.request());
  if (!may) {
    Error error = may.error();
    co_await answer_openai_error(exchange, std::move(error));
    co_return;
  }
  const auto trace = service.requests.find(id);
  if (!trace || trace->record().owner != may->owner) {
    Error error = unknown_request(id);
    co_await answer_openai_error(exchange, std::move(error));
    co_return;
  }
  http::Response response =
      http::json_response(200, api::to_json(trace->record(), api::Viewer::Owner));
  co_await exchange.respond(std::move(response));
}

}  // namespace

std::string requests_now(const Service& service, std::size_t most) {
  std::vector<const api::RequestRecord*> records;
  const auto traces = service.requests.recent(most);
  for (const auto& trace : traces) records.push_back(&trace->record());
  return api::requests_json(records);
}

void add_request_routes(http::Router& router, Service& service) {
  add_admin_route(router, service, "GET", "/admin/requests", list_requests);
  add_admin_route(router, service, "GET", "/admin/requests/{id}", show_request);
  add_admin_route(router, service, "POST", "/admin/requests/{id}/cancel", cancel_request);
  router.add("GET", "/v1/requests/{id}", [&service](Exchange& exchange, PathParams params) {
    return show_own_request(service, exchange, params["id"]);
  });
}

}  // namespace flotilla::gateway
