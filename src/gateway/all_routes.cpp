#include "api/openapi.h"
#include "gateway/routes.h"
#include "gateway/routes_operator.h"

namespace flotilla::gateway {
namespace {

Awaitable<void> show_openapi(Service& service, http::Exchange& exchange) {
  const auto may = service.guard.may_observe(exchange.request(), service.clock.now(),
                                             service.clock.unix_ms() / 1000);
  if (!may) {
    Error error = may.error();
    co_await answer_openai_error(exchange, std::move(error));
    co_return;
  }
  http::Response response = http::json_response(200, std::string(api::openapi_json()));
  response.headers.set("Cache-Control", "no-cache");
  co_await exchange.respond(std::move(response));
}

}  // namespace

void add_all_routes(http::Router& router, Service& service) {
  add_chat_routes(router, service);
  add_form_routes(router, service);
  add_request_routes(router, service);
  add_operation_routes(router, service);
  add_admin_routes(router, service);
  add_key_routes(router, service);
  add_login_routes(router, service);
  add_model_routes(router, service);
  add_transfer_routes(router, service);
  add_node_routes(router, service);
  add_history_routes(router, service);
  add_bench_routes(router, service);
  add_stream_routes(router, service);
  add_usage_routes(router, service);
  router.add("GET", "/openapi.json", [&service](http::Exchange& exchange, http::PathParams) {
    return show_openapi(service, exchange);
  });
}

}  // namespace flotilla::gateway
