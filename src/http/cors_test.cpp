#include "http/cors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/test_loop.h"

namespace flotilla::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A server whose routes answer "body" to everybody.
struct CorsTest : testing::Test {
  TestLoop loop;
  Cors cors;
  const Handler routes = [](Exchange& exchange) { return answer(exchange); };

  static Awaitable<void> answer(Exchange& exchange) {
    Response response;
    response.body = "body";
    co_await exchange.respond(std::move(response));
  }

  std::string ask(const std::string& method, const std::string& fields) {
    Server server(
        loop.executor(), [this](Exchange& exchange) { return cors.handle(exchange, routes); },
        ServerOptions());
    const std::uint16_t port = *server.listen_tcp("127.0.0.1", 0);
    const auto channel = loop.connect(port);
    loop.send(channel,
              method + " /v1/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + fields + "\r\n");
    return loop.read_all(channel);
  }
};

constexpr const char* kPreflight =
    "Origin: https://any.example\r\nAccess-Control-Request-Method: POST\r\n";

TEST_F(CorsTest, everyone_may_be_listed_but_never_with_credentials) {
  cors = *Cors::make({"*"});
  EXPECT_THAT(ask("OPTIONS", kPreflight),
              AllOf(StartsWith("HTTP/1.1 204"), HasSubstr("Access-Control-Allow-Origin: *\r\n"),
                    Not(HasSubstr("Allow-Credentials"))));
  EXPECT_THAT(ask("GET", "Origin: null\r\nCookie: a=b\r\n"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Access-Control-Allow-Origin: *\r\n"),
                    HasSubstr("Access-Control-Expose-Headers: X-Request-Id"),
                    Not(HasSubstr("Allow-Credentials"))));
}

TEST_F(CorsTest, only_headers_that_have_a_name_are_allowed) {
  cors = *Cors::make({"https://any.example"});
  const auto asked = [&](const std::string& names) {
    return ask("OPTIONS", kPreflight + ("Access-Control-Request-Headers: " + names + "\r\n"));
  };
  EXPECT_THAT(asked("authorization, x-a_b"), HasSubstr("Allow-Headers: authorization, x-a_b\r\n"));
  EXPECT_THAT(asked("*"), Not(HasSubstr("Allow-Headers")));
  EXPECT_THAT(asked("a\x01Set-Cookie: b"), Not(HasSubstr("Allow-Headers")));
  EXPECT_THAT(asked(std::string(5000, 'a')), Not(HasSubstr("Allow-Headers")));
}

TEST_F(CorsTest, what_is_no_preflight_reaches_the_routes) {
  cors = *Cors::make({"https://any.example"});
  EXPECT_THAT(ask("OPTIONS", "Origin: https://any.example\r\n"), HasSubstr("body"));
  EXPECT_THAT(
      ask("OPTIONS", "Access-Control-Request-Method: GET\r\n"),
      AllOf(HasSubstr("body"), HasSubstr("Vary: Origin\r\n"), Not(HasSubstr("Access-Control-"))));
}

TEST(Cors, refuses_what_no_browser_sends_as_an_origin) {
  for (const char* good : {"https://app.example", "http://localhost:5173", "http://[::1]:80800",
                           "tauri://localhost", "chrome-extension://abc"}) {
    EXPECT_TRUE(Cors::make({good})) << good;
  }
  for (const char* bad :
       {"", "null", "app.example", "://a", "https://", "https://a/", "https://a?b", "HTTPS://a",
        "https://A.example", "https://*.example", "https://a:443", "http://a:80", "https://u@a",
        "https://a,https://b", "https://a b", "https://\xc3\xa4.example"}) {
    const auto cors = Cors::make({"https://app.example", bad});
    ASSERT_FALSE(cors) << bad;
    EXPECT_THAT(cors.error().message, HasSubstr("write it as a browser sends it"));
  }
}

}  // namespace
}  // namespace flotilla::http
