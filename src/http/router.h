#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "http/server.h"

namespace flotilla::http {

// Values of a pattern's `{name}` segments, percent-decoded.
using PathParams = std::unordered_map<std::string, std::string>;
using RouteHandler = std::function<Awaitable<void>(Exchange&, PathParams)>;

// Finds the handler of a method and path. Patterns: "/admin/clusters/{c}/load"; a literal segment
// wins over `{name}`. What matches no pattern goes to `not_found`, a known path with another method
// to `method_not_allowed` (which gets the Allow header's value).
class Router {
 public:
  void add(std::string method, std::string pattern, RouteHandler handler);
  void on_not_found(std::function<Awaitable<void>(Exchange&)> handler);
  void on_method_not_allowed(std::function<Awaitable<void>(Exchange&, std::string allow)> handler);

  Awaitable<void> handle(Exchange& exchange) const;

  struct Pattern {
    std::string method;
    std::string path;  // as it was added
    auto operator<=>(const Pattern&) const = default;
  };
  std::vector<Pattern> patterns() const;

 private:
  struct Route {
    std::string method;
    std::vector<std::string> segments;
    RouteHandler handler;
  };
  std::vector<Route> routes_;
  std::function<Awaitable<void>(Exchange&)> not_found_;
  std::function<Awaitable<void>(Exchange&, std::string)> method_not_allowed_;
};

}  // namespace flotilla::http
