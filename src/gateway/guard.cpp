#include "gateway/guard.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/secret.h"
#include "gateway/site.h"

namespace flotilla::gateway {
namespace {

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// Of Authorization: Bearer, or of x-api-key as Anthropic's SDK sends it; empty: neither.
std::string_view secret_of(const http::Request& request) {
  constexpr std::string_view scheme = "Bearer ";
  const std::string_view bearer = request.headers.find("Authorization").value_or("");
  if (same_letters(bearer.substr(0, scheme.size()), scheme)) return bearer.substr(scheme.size());
  return request.headers.find("x-api-key").value_or("");
}

bool is_json(const http::Request& request) {
  std::string type(request.headers.find("Content-Type").value_or(""));
  type = type.substr(0, type.find(';'));
  std::ranges::transform(type, type.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  while (!type.empty() && type.back() == ' ') type.pop_back();
  return type == "application/json";
}

// Asked by the head alone, before a body is there.
Result<void> check_content_type(const http::Request& request) {
  const bool has_body = !request.body.empty() || request.method == "POST" ||
                        request.method == "PUT" ||
                        request.headers.find("Content-Length").value_or("0") != "0" ||
                        request.headers.find("Transfer-Encoding").has_value();
  if (!has_body || is_json(request)) return {};
  return fail(
      Code::UnsupportedMedia,
      fmt::format(
          "Content-Type is \"{}\"; send the body as JSON with Content-Type: application/json",
          request.headers.find("Content-Type").value_or("")));
}

Attempts::Sender sender_of(const http::Request& request) {
  return {.address = request.peer, .is_loopback = request.peer_is_loopback};
}

std::string host_name(const http::Request& request) {
  const auto host = parse_host(request.headers.find("Host").value_or(""));
  return host ? host->name : std::string();
}

Error expired(const KeyRing::Key& key) {
  return Error{.code = Code::Unauthenticated,
               .message = fmt::format("API key \"{}\" has expired", key.spec.name),
               .reason = "expired_api_key"};
}

Error key_needed() {
  return Error{.code = Code::Unauthenticated,
               .message =
                   "an API key is needed; send Authorization: Bearer KEY (in the dashboard a "
                   "log-in does, with --admin-token-file)",
               .reason = "invalid_api_key"};
}

}  // namespace

Guard::Guard(GuardPolicy policy, const KeyRing& keys) : policy_(std::move(policy)), keys_(keys) {}

Result<void> Guard::is_local_operator(const http::Request& request) const {
  if (!request.peer_is_loopback) {
    return fail(
        Code::Unauthenticated,
        fmt::format(
            "a request from {} needs a key or token; without one only this machine is served",
            request.peer));
  }
  if (came_by_proxy(request)) {
    return fail(Code::Unauthenticated,
                "the request came through a proxy (by HTTP/1.0, or with Forwarded, X-Forwarded-*, "
                "X-Real-IP, Via or the like), so it needs a key or token");
  }
  if (!is_loopback_name(host_name(request))) {
    return fail(
        Code::PermissionDenied,
        fmt::format(
            "Host \"{}\" is not this machine's loopback name; use localhost, 127.0.0.1 or [::1], "
            "or set a token",
            request.headers.find("Host").value_or("")));
  }
  return {};
}

Result<Guard::Secret> Guard::try_secret(const http::Request& request, std::string_view secret,
                                        Instant now) {
  const Attempts::Sender sender = sender_of(request);
  if (const KeyRing::Key* key = keys_.find_secret(secret))
    return Secret{.opened = Opened::ForKey, .key = key};
  if (auto may = attempts_.check(sender, now); !may) return fail(may.error());
  if (has_token() && same_secret(secret, policy_.admin_token)) return Secret{};
  attempts_.failed(sender, secret, now);
  return fail(Error{.code = Code::Unauthenticated,
                    .message = "this API key is not known here",
                    .reason = "invalid_api_key"});
}

// Where a request is served in any case: SDKs send some key, and again and again the same.
bool Guard::is_operators_secret(const http::Request& request, std::string_view secret,
                                Instant now) {
  if (secret.empty() || !has_token() || attempts_.knows(sender_of(request), secret, now))
    return false;
  const auto tried = try_secret(request, secret, now);
  return tried && tried->opened == Opened::ForOperator;
}

// A page's script reads nothing that is not for its site, but it can ask.
Result<void> Guard::check_page(const http::Request& request) const {
  const auto origin = request.headers.find("Origin");
  if (!origin && !is_from_other_site(request)) return {};
  if (origin) {
    const bool listed = std::ranges::any_of(
        policy_.sites, [&](const std::string& site) { return site == "*" || site == *origin; });
    if (listed || is_own_origin(request, *origin)) return {};
  }
  return fail(Code::PermissionDenied,
              fmt::format("a page of another site ({}) asks without a key; start the server with "
                          "--cors-origin for it, or send a key",
                          origin ? fmt::format("Origin \"{}\"", *origin) : "Sec-Fetch-Site"));
}

// Whether /v1 is served without a secret while there are no keys.
Result<void> Guard::is_open(const http::Request& request) const {
  if (policy_.allow_anonymous) return {};
  if (auto local = is_local_operator(request); !local) return local;
  return check_page(request);
}

Result<Caller> Guard::find_caller(const http::Request& request, Instant now, std::int64_t unix_s) {
  Caller nobody{.key = {}, .owner = request.peer};
  Caller operators{.key = {}, .owner = "operator at " + request.peer, .is_operator = true};
  const std::string_view secret = secret_of(request);
  const bool may_be_ours = !secret.empty() && !policy_.own_secret.empty();
  if (may_be_ours && same_secret(secret, policy_.own_secret)) return operators;
  if (secret.empty()) {
    const auto logged_in = find_login(request, now);
    if (!logged_in) return fail(logged_in.error());
    if (*logged_in) return operators;
  }
  if (keys_.empty()) {
    const auto open = is_open(request);
    if (open) return is_operators_secret(request, secret, now) ? operators : nobody;
    if (secret.empty() || !has_token()) return fail(open.error());
  }
  if (secret.empty()) {
    if (policy_.allow_anonymous) return nobody;
    return fail(key_needed());
  }
  const auto tried = try_secret(request, secret, now);
  if (!tried) return fail(tried.error());
  if (tried->opened == Opened::ForOperator) return operators;
  if (tried->key->has_expired(unix_s)) return fail(expired(*tried->key));
  return Caller{.key = tried->key->id, .owner = tried->key->id};
}

Result<Caller> Guard::may_use(const http::Request& request, Instant now, std::int64_t unix_s) {
  if (auto one = check_one_origin(request); !one) return fail(one.error());
  auto caller = find_caller(request, now, unix_s);
  if (!caller) return caller;
  if (auto may = check_content_type(request); !may) return fail(may.error());
  return caller;
}

Result<void> Guard::still_may_use(const http::Request& request, const Caller& caller, Instant now,
                                  std::int64_t unix_s) const {
  if (caller.is_operator) return still_may_administer(request, now);
  if (caller.key.empty()) {
    if (keys_.empty() || policy_.allow_anonymous) return {};
    return fail(key_needed());
  }
  const KeyRing::Key* key = keys_.find(caller.key);
  if (key == nullptr) {
    return fail(Error{.code = Code::Unauthenticated,
                      .message = "this API key was taken back",
                      .reason = "invalid_api_key"});
  }
  if (key->has_expired(unix_s)) return fail(expired(*key));
  return {};
}

Result<void> Guard::may_observe(const http::Request& request, Instant now, std::int64_t unix_s) {
  if (!has_token() && keys_.empty()) {
    if (auto local = is_local_operator(request); !local) return local;
    return check_page(request);
  }
  const std::string_view secret = secret_of(request);
  if (secret.empty()) {
    const auto logged_in = find_login(request, now);
    if (!logged_in) return fail(logged_in.error());
    if (*logged_in) return {};
    return fail(Error{.code = Code::Unauthenticated,
                      .message = "an API key or the admin token is needed; send Authorization: "
                                 "Bearer KEY",
                      .reason = "invalid_api_key"});
  }
  const auto tried = try_secret(request, secret, now);
  if (!tried) return fail(tried.error());
  if (tried->key != nullptr && tried->key->has_expired(unix_s)) return fail(expired(*tried->key));
  return {};
}

bool Guard::host_is_listed(const http::Request& request) const {
  const std::string host = host_name(request);
  return is_loopback_name(host) || (policy_.admin_by_address && is_address(host)) ||
         std::ranges::find(policy_.admin_hosts, host) != policy_.admin_hosts.end();
}

// What has no secret is no guess.
Result<void> Guard::check_token(const http::Request& request, Instant now) {
  const std::string_view secret = secret_of(request);
  if (secret.empty()) {
    const auto logged_in = find_login(request, now);
    if (!logged_in) return fail(logged_in.error());
    if (*logged_in) return {};
    return fail(Code::Unauthenticated,
                "the admin token is needed; log in, or send Authorization: Bearer TOKEN");
  }
  const auto tried = try_secret(request, secret, now);
  if (tried && tried->opened == Opened::ForOperator) return {};
  if (tried) {
    return fail(Code::Unauthenticated,
                "an API key opens /v1 and /metrics; here the admin token is needed");
  }
  if (tried.error().code != Code::Unauthenticated) return fail(tried.error());
  return fail(Code::Unauthenticated,
              "the admin token is wrong; it is in the server's --admin-token-file");
}

Result<void> Guard::check_site(const http::Request& request) const {
  if (auto one = check_one_origin(request); !one) return one;
  if (!host_is_listed(request)) {
    return fail(Code::PermissionDenied,
                fmt::format("Host \"{}\" may not reach /admin; use localhost, 127.0.0.1 or [::1], "
                            "or start the server with --admin-host for it",
                            request.headers.find("Host").value_or("")));
  }
  const auto origin = request.headers.find("Origin");
  if (origin ? is_own_origin(request, *origin) : !is_from_other_site(request)) return {};
  return fail(Code::PermissionDenied,
              fmt::format("{} is another site; /admin answers its own pages only",
                          origin ? fmt::format("Origin \"{}\"", *origin)
                                 : "what a browser names in Sec-Fetch-Site"));
}

Result<void> Guard::may_administer(const http::Request& request, Instant now) {
  if (auto site = check_site(request); !site) return site;
  if (auto allowed = has_token() ? check_token(request, now) : is_local_operator(request);
      !allowed) {
    return allowed;
  }
  return check_content_type(request);
}

Result<void> Guard::still_may_administer(const http::Request& request, Instant now) const {
  if (!login_ended(request, now)) return {};
  return fail(Code::Unauthenticated, "the log-in ended before the request was begun; log in again");
}

std::string Guard::login_cookie(const http::Request& request) {
  const auto host = parse_host(request.headers.find("Host").value_or(""));
  const bool has_port = host && !host->port.empty();
  return has_port ? "flotilla_login_" + host->port : "flotilla_login";
}

Result<void> Guard::check_own_page(const http::Request& request) const {
  const auto origin = request.headers.find("Origin");
  if (origin && is_own_origin(request, *origin)) return {};
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (!origin && reads && !is_from_other_site(request)) return {};
  return fail(Code::PermissionDenied,
              fmt::format("by a log-in only the dashboard's own pages are served, and Origin is "
                          "\"{}\"; elsewhere send Authorization: Bearer TOKEN",
                          origin.value_or("missing")));
}

// The cookie that is a log-in's, among those of its name: what else answers on this host, or on a
// name beside it, can set more of them, and would shut everybody out.
std::optional<std::string_view> Guard::held_login(const http::Request& request, Instant now) const {
  for (const std::string_view secret : request.cookies(login_cookie(request)))
    if (logins_.hold(secret, now)) return secret;
  return std::nullopt;
}

Result<bool> Guard::find_login(const http::Request& request, Instant now) {
  const auto secret = held_login(request, now);
  if (!secret || !logins_.use(*secret, now)) return false;
  if (auto own = check_own_page(request); !own) return fail(own.error());
  return true;
}

Result<std::string> Guard::log_in(const http::Request& request, std::string_view token,
                                  Instant now) {
  if (auto site = check_site(request); !site) return fail(site.error());
  if (auto type = check_content_type(request); !type) return fail(type.error());
  if (!has_token()) {
    return fail(Code::Conflict,
                "this server has no admin token to log in with, and /admin serves its own machine "
                "alone; start it with --admin-token-file");
  }
  const auto tried = try_secret(request, token, now);
  if (tried && tried->opened == Opened::ForOperator) return logins_.begin(now);
  if (!tried && tried.error().code != Code::Unauthenticated) return fail(tried.error());
  return fail(Error{.code = Code::Unauthenticated,
                    .message = "this is not the admin token; it is in the server's "
                               "--admin-token-file",
                    .param = "token"});
}

bool Guard::is_worth_telling(const http::Request& request, Instant now) {
  return attempts_.tell(sender_of(request), now);
}

bool Guard::is_guess_worth_telling(const http::Request& request, Instant now) {
  const std::string_view secret = secret_of(request);
  return !secret.empty() && attempts_.knows(sender_of(request), secret, now) &&
         is_worth_telling(request, now);
}

Result<bool> Guard::log_out(const http::Request& request, Instant now) {
  if (auto site = check_site(request); !site) return fail(site.error());
  if (auto type = check_content_type(request); !type) return fail(type.error());
  const auto known = find_login(request, now);
  if (!known) return fail(known.error());
  while (const auto secret = held_login(request, now)) logins_.end(*secret);
  return *known;
}

const char* Guard::way_in(const http::Request& request) const {
  if (!has_token()) return "";
  return secret_of(request).empty() ? "a log-in from " : "the token from ";
}

bool Guard::login_ended(const http::Request& request, Instant now) const {
  if (!has_token() || !secret_of(request).empty()) return false;
  return !held_login(request, now);
}

}  // namespace flotilla::gateway
