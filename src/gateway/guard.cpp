#include "gateway/guard.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

namespace flotilla::gateway {
namespace {

constexpr int kFailuresPerMinute = 10;
constexpr std::size_t kAddressesMax = 10000;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// "localhost:8000" -> "localhost", "[::1]:8000" -> "[::1]"
std::string host_name(const http::Request& request) {
  const std::string host = lower(request.headers.find("Host").value_or(""));
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool is_address(std::string_view host) {
  return host.starts_with('[') ||
         (!host.empty() && host.find_first_not_of("0123456789.") == std::string_view::npos);
}

bool is_loopback_name(std::string_view host) {
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

bool came_by_proxy(const http::Request& request) {
  return std::ranges::any_of(request.headers.fields(), [](const auto& field) {
    const std::string name = lower(field.first);
    return name == "forwarded" || name == "via" || name.starts_with("x-forwarded-");
  });
}

// Compares every byte whatever the first difference: the time tells nothing of the token.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0U : 1U;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(other);
  }
  return difference == 0;
}

// Of Authorization: Bearer, or of x-api-key as Anthropic's SDK sends it; empty: neither.
std::string_view secret_of(const http::Request& request) {
  constexpr std::string_view scheme = "Bearer ";
  const std::string_view bearer = request.headers.find("Authorization").value_or("");
  if (bearer.starts_with(scheme)) return bearer.substr(scheme.size());
  return request.headers.find("x-api-key").value_or("");
}

bool is_own_origin(const http::Request& request, std::string_view origin) {
  const std::string host(request.headers.find("Host").value_or(""));
  return origin == "http://" + host || origin == "https://" + host;
}

bool is_json(const http::Request& request) {
  std::string type = lower(request.headers.find("Content-Type").value_or(""));
  type = type.substr(0, type.find(';'));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  return type == "application/json";
}

Result<void> check_content_type(const http::Request& request) {
  const bool has_body =
      !request.body.empty() || request.method == "POST" || request.method == "PUT";
  if (!has_body || is_json(request)) return {};
  return fail(
      Code::UnsupportedMedia,
      fmt::format(
          "Content-Type is \"{}\"; send the body as JSON with Content-Type: application/json",
          request.headers.find("Content-Type").value_or("")));
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
                "the request came through a proxy (Forwarded, X-Forwarded-* or Via is present), so "
                "it needs a key "
                "or token");
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

// The dashboard of who administers without a token: there is nothing to log in with, and it could
// make itself a key.
bool Guard::is_operators_page(const http::Request& request) const {
  const auto origin = request.headers.find("Origin");
  return !has_token() && origin && is_own_origin(request, *origin) && is_local_operator(request);
}

Result<Caller> Guard::find_caller(const http::Request& request, Instant now, std::int64_t unix_s) {
  Caller nobody{.key = {}, .owner = request.peer};
  const std::string_view secret = secret_of(request);
  const bool is_admin = !policy_.admin_token.empty() && same_secret(secret, policy_.admin_token);
  const bool is_self = !policy_.own_secret.empty() && same_secret(secret, policy_.own_secret);
  if (is_admin || is_self) return nobody;
  if (secret.empty()) {
    const auto logged_in = find_login(request, now);
    if (!logged_in) return fail(logged_in.error());
    if (*logged_in) return nobody;
  }
  if (keys_.empty()) {  // SDKs send some key in any case
    if (policy_.allow_anonymous) return nobody;
    if (auto local = is_local_operator(request); !local) return fail(local.error());
    return nobody;
  }
  if (secret.empty()) {
    if (policy_.allow_anonymous || is_operators_page(request)) return nobody;
    return fail(Error{.code = Code::Unauthenticated,
                      .message = "an API key is needed; send Authorization: Bearer KEY",
                      .reason = "invalid_api_key"});
  }
  if (auto may = check_failures(request.peer, now); !may) return fail(may.error());
  const auto key = keys_.open(secret, unix_s);
  if (!key) {
    failures_[request.peer].push_back(now);
    return fail(key.error());
  }
  return Caller{.key = (*key)->id, .owner = (*key)->id};
}

Result<Caller> Guard::may_use(const http::Request& request, Instant now, std::int64_t unix_s) {
  auto caller = find_caller(request, now, unix_s);
  if (!caller) return caller;
  if (auto may = check_content_type(request); !may) return fail(may.error());
  return caller;
}

Result<void> Guard::may_observe(const http::Request& request, Instant now) {
  return policy_.admin_token.empty() ? is_local_operator(request) : check_token(request, now);
}

bool Guard::host_is_listed(const http::Request& request) const {
  const std::string host = host_name(request);
  return is_loopback_name(host) || (policy_.admin_by_address && is_address(host)) ||
         std::ranges::find(policy_.admin_hosts, host) != policy_.admin_hosts.end();
}

Result<void> Guard::check_failures(const std::string& peer, Instant now) {
  if (failures_.size() > kAddressesMax) failures_.clear();
  const auto found = failures_.find(peer);
  if (found == failures_.end()) return {};
  auto& failures = found->second;
  while (!failures.empty() && now - failures.front() > std::chrono::minutes(1))
    failures.pop_front();
  if (failures.empty())
    failures_.erase(found);
  else if (failures.size() >= kFailuresPerMinute) {
    return fail(Error{.code = Code::ResourceExhausted,
                      .message = fmt::format("{} wrong keys or tokens from {} within a minute; "
                                             "wait a minute",
                                             kFailuresPerMinute, peer),
                      .retry_after_s = 60});
  }
  return {};
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
  if (auto may = check_failures(request.peer, now); !may) return may;
  if (same_secret(secret, policy_.admin_token)) return {};
  failures_[request.peer].push_back(now);
  return fail(Code::Unauthenticated,
              "the admin token is wrong; it is in the server's --admin-token-file");
}

Result<void> Guard::check_site(const http::Request& request) const {
  if (!host_is_listed(request)) {
    return fail(Code::PermissionDenied,
                fmt::format("Host \"{}\" may not reach /admin; use localhost, 127.0.0.1 or [::1], "
                            "or start the server with --admin-host for it",
                            request.headers.find("Host").value_or("")));
  }
  const auto origin = request.headers.find("Origin");
  if (!origin || is_own_origin(request, *origin)) return {};
  return fail(
      Code::PermissionDenied,
      fmt::format("Origin \"{}\" is another site; /admin answers its own pages only", *origin));
}

Result<void> Guard::may_administer(const http::Request& request, Instant now) {
  if (auto site = check_site(request); !site) return site;
  if (auto allowed = has_token() ? check_token(request, now) : is_local_operator(request);
      !allowed) {
    return allowed;
  }
  return check_content_type(request);
}

std::string Guard::login_cookie(const http::Request& request) {
  const std::string_view host = request.headers.find("Host").value_or("");
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && host.find(']', colon) == host.npos;
  return has_port ? fmt::format("flotilla_login_{}", host.substr(colon + 1)) : "flotilla_login";
}

Result<void> Guard::check_own_page(const http::Request& request) const {
  const auto origin = request.headers.find("Origin");
  if (origin && is_own_origin(request, *origin)) return {};
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (!origin && reads) return {};
  return fail(Code::PermissionDenied,
              fmt::format("by a log-in only the dashboard's own pages are served, and Origin is "
                          "\"{}\"; elsewhere send Authorization: Bearer TOKEN",
                          origin.value_or("missing")));
}

Result<bool> Guard::find_login(const http::Request& request, Instant now) {
  const auto secret = request.cookie(login_cookie(request));
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
  if (auto may = check_failures(request.peer, now); !may) return fail(may.error());
  if (same_secret(token, policy_.admin_token)) return logins_.begin(now);
  failures_[request.peer].push_back(now);
  return fail(Error{.code = Code::Unauthenticated,
                    .message = "this is not the admin token; it is in the server's "
                               "--admin-token-file",
                    .param = "token"});
}

Result<void> Guard::log_out(const http::Request& request, Instant now) {
  if (auto site = check_site(request); !site) return site;
  if (auto type = check_content_type(request); !type) return type;
  const auto known = find_login(request, now);
  if (!known) return fail(known.error());
  if (*known) logins_.end(*request.cookie(login_cookie(request)));
  return {};
}

bool Guard::login_ended(const http::Request& request, Instant now) const {
  if (!has_token() || !secret_of(request).empty()) return false;
  return !logins_.hold(request.cookie(login_cookie(request)).value_or(""), now);
}

}  // namespace flotilla::gateway
