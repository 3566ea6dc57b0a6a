#include "http/router.h"

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace flotilla::http {
namespace {

// "/a/b" -> {"a", "b"}; "/" -> {""}. A trailing slash is a segment of its own.
std::vector<std::string_view> split_path(std::string_view path) {
  std::vector<std::string_view> segments;
  if (path.starts_with('/')) path.remove_prefix(1);
  while (true) {
    const std::size_t slash = path.find('/');
    segments.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

bool is_param(const std::string& segment) { return segment.starts_with('{'); }

bool matches(const std::vector<std::string>& pattern, const std::vector<std::string>& path) {
  return std::ranges::equal(pattern, path, [](const std::string& want, const std::string& have) {
    return is_param(want) ? !have.empty() : want == have;
  });
}

// The first segment where the two differ in kind decides.
bool more_literal(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (is_param(a[i]) != is_param(b[i])) return is_param(b[i]);
  }
  return false;
}

bool serves(std::string_view route_method, std::string_view method) {
  return route_method == method || (route_method == "GET" && method == "HEAD");
}

std::string allow_value(std::vector<std::string> methods) {
  if (std::ranges::find(methods, "GET") != methods.end()) methods.emplace_back("HEAD");
  std::ranges::sort(methods);
  methods.erase(std::ranges::unique(methods).begin(), methods.end());
  std::string out;
  for (const std::string& method : methods) out += (out.empty() ? "" : ", ") + method;
  return out;
}

}  // namespace

void Router::add(std::string method, std::string pattern, RouteHandler handler) {
  CHECK(pattern.starts_with('/'));
  Route route{.method = std::move(method), .segments = {}, .handler = std::move(handler)};
  for (const std::string_view segment : split_path(pattern)) {
    CHECK(segment.starts_with('{') == segment.ends_with('}'));
    route.segments.emplace_back(segment);
  }
  routes_.push_back(std::move(route));
}

void Router::on_not_found(std::function<Awaitable<void>(Exchange&)> handler) {
  not_found_ = std::move(handler);
}

void Router::on_method_not_allowed(
    std::function<Awaitable<void>(Exchange&, std::string allow)> handler) {
  method_not_allowed_ = std::move(handler);
}

std::vector<Router::Pattern> Router::patterns() const {
  std::vector<Pattern> out;
  for (const Route& route : routes_) {
    Pattern& pattern = out.emplace_back(Pattern{.method = route.method, .path = {}});
    for (const std::string& segment : route.segments) pattern.path += "/" + segment;
  }
  return out;
}

Awaitable<void> Router::handle(Exchange& exchange) const {
  std::vector<std::string> path;
  bool decodable = true;
  for (const std::string_view segment : split_path(exchange.request().path())) {
    std::optional<std::string> decoded = percent_decode(segment);
    decodable = decodable && decoded;
    path.push_back(std::move(decoded).value_or(std::string()));
  }
  const Route* best = nullptr;
  std::vector<std::string> allowed;
  for (const Route& route : routes_) {
    if (!decodable || !matches(route.segments, path)) continue;
    allowed.push_back(route.method);
    if (!serves(route.method, exchange.request().method)) continue;
    if (!best || more_literal(route.segments, best->segments)) best = &route;
  }
  if (best) {
    PathParams params;
    for (std::size_t i = 0; i < path.size(); ++i) {
      const std::string& segment = best->segments[i];
      if (is_param(segment)) params.emplace(segment.substr(1, segment.size() - 2), path[i]);
    }
    co_await best->handler(exchange, std::move(params));
  } else if (!allowed.empty() && method_not_allowed_) {
    std::string allow = allow_value(std::move(allowed));
    co_await method_not_allowed_(exchange, std::move(allow));
  } else if (allowed.empty() && not_found_) {
    co_await not_found_(exchange);
  } else {
    Response response;
    response.status = allowed.empty() ? 404 : 405;
    if (!allowed.empty()) response.headers.add("Allow", allow_value(std::move(allowed)));
    co_await exchange.respond(std::move(response));
  }
}

}  // namespace flotilla::http
