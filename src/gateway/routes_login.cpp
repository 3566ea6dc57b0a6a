#include <algorithm>

#include <fmt/format.h>

#include "api/error_body.h"
#include "api/login.h"
#include "base/log.h"
#include "gateway/routes.h"

// A browser's way into the dashboard where an admin token is set.
namespace flotilla::gateway {
namespace {

using http::Exchange;
using http::PathParams;

// Anybody may send one.
constexpr std::size_t kBodyMax = 8 << 10;
constexpr std::size_t kActionMax = 128;  // bytes told of what somebody asked who was not let in

// Not for scripts, not for other sites; gone with the browser.
std::string cookie_of(const http::Request& request, std::string_view secret) {
  const bool by_tls =
      request.by_tls || request.headers.find("Origin").value_or("").starts_with("https://");
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict{}{}", Guard::login_cookie(request),
                     secret, by_tls ? "; Secure" : "", secret.empty() ? "; Max-Age=0" : "");
}

std::string action_of(const http::Request& request) {
  std::string action = fmt::format("{} {}", request.method, request.path());
  action.resize(std::min(action.size(), kActionMax));
  return action;
}

void note(Service& service, const http::Request& request, int status) {
  store::StoredEvent event;
  event.at_unix_ms = service.clock.unix_ms();
  event.who = request.peer;
  event.action = action_of(request);
  event.status = status;
  service.control.note_event(std::move(event));
}

http::Response with_cookie(const http::Request& request, std::string_view secret) {
  http::Response response;
  response.status = 204;
  response.headers.add("Set-Cookie", cookie_of(request, secret));
  response.headers.add("Cache-Control", "no-store");
  return response;
}

Result<std::string> begin_login(Service& service, const http::Request& request) {
  if (request.body.size() > kBodyMax) {
    return fail(Code::TooLarge, fmt::format("the body has {} bytes; a log-in has {} at most",
                                            request.body.size(), kBodyMax));
  }
  const auto token = api::parse_login(request.body);
  if (!token) return fail(token.error());
  return service.guard.log_in(request, *token, service.clock.now());
}

Awaitable<void> log_in(Service& service, Exchange& exchange) {
  const http::Request request = exchange.take_request();
  const auto secret = begin_login(service, request);
  if (!secret) {
    Error error = secret.error();
    // Whoever is let in writes the audit; of who is not it keeps a few lines.
    if (error.code == Code::Unauthenticated &&
        service.guard.is_worth_telling(request, service.clock.now()))
      note_wrong_token(service, request);
    co_await answer_problem(exchange, std::move(error));
    co_return;
  }
  note(service, request, 204);
  http::Response response = with_cookie(request, *secret);
  co_await exchange.respond(std::move(response));
}

// Also of one who is logged out already: the cookie goes in any case.
Awaitable<void> log_out(Service& service, Exchange& exchange) {
  const http::Request request = exchange.take_request();
  const auto done = service.guard.log_out(request, service.clock.now());
  if (!done) {
    Error error = done.error();
    co_await answer_problem(exchange, std::move(error));
    co_return;
  }
  if (*done) note(service, request, 204);
  http::Response response = with_cookie(request, "");
  co_await exchange.respond(std::move(response));
}

}  // namespace

void note_wrong_token(Service& service, const http::Request& request) {
  note(service, request, api::http_status(Code::Unauthenticated));
  log::warning("a wrong admin token from {}: {}", request.peer, action_of(request));
}

void add_login_routes(http::Router& router, Service& service) {
  router.add("POST", "/admin/login",
             [&service](Exchange& exchange, PathParams) { return log_in(service, exchange); });
  router.add("POST", "/admin/logout",
             [&service](Exchange& exchange, PathParams) { return log_out(service, exchange); });
}

}  // namespace flotilla::gateway
