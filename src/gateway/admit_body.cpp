#include "gateway/admit_body.h"

#include "api/error_body.h"
#include "forms/form_routes.h"

namespace flotilla::gateway {
namespace {

// Where anybody may ask: to log in, or for what is not there.
constexpr std::int64_t kOpenBodyMax = 16 << 10;

enum class Door { Open, Use, Administer };

Door door_of(std::string_view path) {
  if (path == "/admin/login" || path == "/admin/logout") return Door::Open;
  if (path.starts_with("/admin/")) return Door::Administer;
  const bool uses = path.starts_with("/v1/") || path == "/tokenize" || path == "/detokenize";
  return uses ? Door::Use : Door::Open;
}

Awaitable<void> refuse(http::Exchange& exchange, Error error) {
  const std::string_view path = exchange.request().path();
  if (door_of(path) == Door::Administer) {
    co_await answer_problem(exchange, std::move(error));
    co_return;
  }
  http::Response response =
      http::json_response(api::http_status(error.code), forms::error_body_for(path, error));
  if (error.retry_after_s > 0)
    response.headers.set("Retry-After", std::to_string(error.retry_after_s));
  co_await exchange.respond(std::move(response));
}

Result<void> may_send(Service& service, const http::Request& request, Door door) {
  if (door == Door::Administer) return service.guard.may_administer(request, service.clock.now());
  const auto caller = has_entered(service, request);  // charged once, by who answers
  if (!caller) return fail(caller.error());
  return {};
}

}  // namespace

Awaitable<std::int64_t> admit_body(Service& service, const Front& front, http::Exchange& exchange) {
  const Door door = door_of(exchange.request().path());
  if (door == Door::Open) co_return kOpenBodyMax;
  const Result<void> may = may_send(service, exchange.request(), door);
  if (may) co_return service.knobs.body_max_bytes;
  // With what lets another site's page read it.
  const http::Handler refusal =
      front.before([error = may.error()](http::Exchange& asked) { return refuse(asked, error); });
  co_await refusal(exchange);
  co_return 0;
}

}  // namespace flotilla::gateway
