#include "http/router.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace flotilla::http {
namespace {

// An exchange without a connection.
class FakeExchange final : public Exchange {
 public:
  FakeExchange(std::string method, std::string target) {
    request_.method = std::move(method);
    request_.target = std::move(target);
  }
  const Request& request() const override { return request_; }
  Request take_request() override { return std::move(request_); }
  Awaitable<bool> respond(Response response) override {
    answer = std::move(response);
    co_return true;
  }
  Awaitable<bool> start(int, Headers, std::string_view) override { co_return true; }
  Awaitable<bool> write(std::string_view) override { co_return true; }
  Awaitable<bool> finish(std::string_view) override { co_return true; }
  void abort() override {}
  bool started() const override { return false; }
  bool client_gone() const override { return false; }
  void on_client_gone(std::function<void()>) override {}

  Response answer;

 private:
  Request request_;
};

RouteHandler named(std::string name) {
  return [name](Exchange& exchange, PathParams params) -> Awaitable<void> {
    Response response;
    response.body = name;
    for (const char* key : {"c", "a"}) {
      if (const auto it = params.find(key); it != params.end()) response.body += " " + it->second;
    }
    co_await exchange.respond(std::move(response));
  };
}

Response handle(const Router& router, std::string method, std::string target) {
  FakeExchange exchange(std::move(method), std::move(target));
  boost::asio::io_context context;
  boost::asio::co_spawn(context, router.handle(exchange), [](std::exception_ptr error) {
    if (error) std::rethrow_exception(error);
  });
  context.run();
  return exchange.answer;
}

Router table() {
  Router router;
  router.add("GET", "/", named("root"));
  router.add("GET", "/admin/{c}/status", named("status"));
  router.add("GET", "/admin/{c}/{a}", named("any"));
  router.add("PUT", "/admin/{c}/{a}", named("put"));
  router.add("GET", "/admin/nodes/status", named("nodes"));
  router.add("POST", "/admin/nodes/only", named("only"));
  router.add("GET", "/{c}/x/status", named("late"));
  return router;
}

TEST(Router, finds_the_most_literal_pattern_and_its_params) {
  const Router router = table();
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"GET", "/", "root"},
      {"GET", "/?x=/admin", "root"},
      {"HEAD", "/", "root"},
      {"GET", "/admin/k/status", "status k"},
      {"GET", "/admin/k/status?a=b", "status k"},
      {"GET", "/admin/nodes/status", "nodes"},
      {"GET", "/admin/k/other", "any k other"},
      {"PUT", "/admin/k/status", "put k status"},
      {"GET", "/admin/x/status", "status x"},
      {"GET", "/b/x/status", "late b"},
      {"GET", "/admin/a%2Fb%20c/status", "status a/b c"},
      {"GET", "/%61dmin/k/status", "status k"},
      {"GET", "/admin/nodes/only", "any nodes only"},
      {"POST", "/admin/nodes/only", "only"},
  };
  for (const auto& [method, target, expected] : cases) {
    const Response response = handle(router, method, target);
    EXPECT_EQ(response.status, 200) << target;
    EXPECT_EQ(response.body, expected) << method << " " << target;
  }
}

TEST(Router, tells_unknown_paths_from_unknown_methods) {
  const Router router = table();
  for (const char* target : {"/none", "/admin", "/admin/k/status/", "/admin//status", "//",
                             "/admin/%zz/status", "*", "/admin/k"}) {
    EXPECT_EQ(handle(router, "GET", target).status, 404) << target;
  }
  const Response response = handle(router, "DELETE", "/admin/k/status");
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(response.headers.find("Allow"), "GET, HEAD, PUT");
}

TEST(Router, hands_the_rest_to_its_two_handlers) {
  Router router = table();
  router.on_not_found([](Exchange& exchange) -> Awaitable<void> {
    co_await exchange.respond(json_response(404, "nf"));
  });
  router.on_method_not_allowed([](Exchange& exchange, std::string allow) -> Awaitable<void> {
    co_await exchange.respond(json_response(405, std::move(allow)));
  });
  EXPECT_EQ(handle(router, "GET", "/none").body, "nf");
  EXPECT_EQ(handle(router, "PATCH", "/").body, "GET, HEAD");
}

}  // namespace
}  // namespace flotilla::http
