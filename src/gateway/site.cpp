#include "gateway/site.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace flotilla::gateway {
namespace {

constexpr std::size_t kPortDigitsMax = 5;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_name(std::string_view name) {
  if (name.starts_with('[')) {
    const std::string_view inside = name.substr(1, name.size() - 2);
    return name.ends_with(']') && !inside.empty() &&
           inside.find_first_not_of("0123456789abcdef:.") == std::string_view::npos;
  }
  return !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-_") ==
                              std::string_view::npos;
}

}  // namespace

std::optional<Host> parse_host(std::string_view text) {
  Host host{.name = lower(text), .port = {}};
  const std::size_t bracket = host.name.starts_with('[') ? host.name.find(']') : 0;
  const std::size_t colon =
      bracket == std::string::npos ? std::string::npos : host.name.find(':', bracket);
  if (colon != std::string::npos) {
    host.port = host.name.substr(colon + 1);
    host.name.resize(colon);
    if (!is_digits(host.port) || host.port.size() > kPortDigitsMax) return std::nullopt;
  }
  if (!is_name(host.name)) return std::nullopt;
  return host;
}

bool is_address(std::string_view name) {
  return name.starts_with('[') ||
         (!name.empty() && name.find_first_not_of("0123456789.") == std::string_view::npos);
}

bool is_loopback_name(std::string_view name) {
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

bool came_by_proxy(const http::Request& request) {
  constexpr std::string_view added[] = {
      "forwarded",        "via",       "x-real-ip",           "x-forwarded",
      "x-client-ip",      "client-ip", "true-client-ip",      "fly-client-ip",
      "cf-connecting-ip", "cdn-loop",  "x-cluster-client-ip", "x-amzn-trace-id",
      "x-request-start"};
  constexpr std::string_view beginnings[] = {"x-forwarded-", "x-original-", "x-envoy-"};
  return request.http_1_0 || std::ranges::any_of(request.headers.fields(), [&](const auto& field) {
           const std::string name = lower(field.first);
           return std::ranges::find(added, name) != std::end(added) ||
                  std::ranges::any_of(beginnings, [&name](std::string_view beginning) {
                    return name.starts_with(beginning);
                  });
         });
}

Result<void> check_one_origin(const http::Request& request) {
  const auto count = std::ranges::count_if(
      request.headers.fields(), [](const auto& field) { return lower(field.first) == "origin"; });
  if (count <= 1) return {};
  return fail(Code::InvalidArgument,
              fmt::format("the request has {} Origin headers; send one at most", count));
}

bool is_own_origin(const http::Request& request, std::string_view origin) {
  const std::string host(request.headers.find("Host").value_or(""));
  if (!parse_host(host)) return false;
  return origin == "https://" + host || (!request.by_tls && origin == "http://" + host);
}

bool is_from_other_site(const http::Request& request) {
  const std::string from = lower(request.headers.find("Sec-Fetch-Site").value_or(""));
  return from == "cross-site" || from == "same-site";
}

}  // namespace flotilla::gateway
