#include "gateway/admit_body.h"

#include "api/error_body.h"
#include "forms/form_routes.h"
#include "gateway/sender.h"

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
  http::add_error_fields(response.headers, error);
  co_await exchange.respond(std::move(response));
}

Result<Sender> may_send(Service& service, const http::Request& request, Door door) {
  if (door == Door::Administer) {
    if (auto may = may_administer(service, request); !may) return fail(may.error());
    return Administrator{};
  }
  auto caller = has_entered(service, request);  // charged once, by who answers
  if (!caller) return fail(caller.error());
  return std::move(*caller);
}

}  // namespace

Awaitable<http::BodyPermit> admit_body(Service& service, const Front& front,
                                       http::Exchange& exchange) {
  const Door door = door_of(exchange.request().path());
  http::BodyPermit permit{.bytes_max = kOpenBodyMax};
  if (door == Door::Open) co_return permit;
  Result<Sender> may = may_send(service, exchange.request(), door);
  if (may) {
    permit.bytes_max = service.knobs.body_max_bytes;
    if (const auto* caller = std::get_if<Caller>(&*may)) {
      permit.key = caller->key;
      for (auto& [name, value] : service.keys.left_fields(caller->key, service.clock.now()))
        permit.headers.set(std::move(name), std::move(value));
    }
    permit.sender = as_sender(std::move(*may));
    co_return permit;
  }
  // With what lets another site's page read it.
  const http::Handler refusal =
      front.before([error = may.error()](http::Exchange& asked) { return refuse(asked, error); });
  co_await refusal(exchange);
  co_return permit;
}

}  // namespace flotilla::gateway
