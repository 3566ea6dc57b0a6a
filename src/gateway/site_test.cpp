#include "gateway/site.h"

#include <gtest/gtest.h>

namespace flotilla::gateway {
namespace {

TEST(Site, a_host_is_a_name_or_address_with_at_most_a_port) {
  struct Case {
    const char* text;
    const char* name;
    const char* port;
  };
  for (const Case& one :
       {Case{"localhost", "localhost", ""}, Case{"LocalHost:8000", "localhost", "8000"},
        Case{"127.0.0.1:1", "127.0.0.1", "1"}, Case{"[::1]", "[::1]", ""},
        Case{"[FD00::1]:65535", "[fd00::1]", "65535"},
        Case{"my-box_2.example.", "my-box_2.example.", ""}}) {
    const auto host = parse_host(one.text);
    ASSERT_TRUE(host) << one.text;
    EXPECT_EQ(host->name, one.name);
    EXPECT_EQ(host->port, one.port);
  }
  for (const char* text :
       {"", ":80", "127.0.0.1:", "127.0.0.1:x", "localhost:8000:evil", "[::1].evil.com", "[::1",
        "[]", "[::1]x:80", "::1", "127.0.0.1:1; Domain=evil", "a b", "user@localhost",
        "localhost/x", "localhost,evil", "localhost:123456", "[::1%eth0]"})
    EXPECT_FALSE(parse_host(text)) << text;
}

TEST(Site, by_tls_a_page_in_the_clear_is_not_ours) {
  http::Request request;
  request.headers.add("Host", "fleet.example:8000");
  EXPECT_TRUE(is_own_origin(request, "http://fleet.example:8000"));
  EXPECT_TRUE(is_own_origin(request, "https://fleet.example:8000")) << "a proxy took TLS off";
  request.by_tls = true;
  EXPECT_TRUE(is_own_origin(request, "https://fleet.example:8000"));
  EXPECT_FALSE(is_own_origin(request, "http://fleet.example:8000"));
}

TEST(Site, what_proxies_add_shows_them) {
  EXPECT_FALSE(came_by_proxy({}));
  for (const char* name : {"Forwarded", "Via", "X-Real-IP", "X-Forwarded", "X-Client-IP",
                           "CF-Connecting-IP", "True-Client-IP", "Client-IP", "X-Forwarded-Any",
                           "Fly-Client-IP", "X-Envoy-External-Address", "X-Amzn-Trace-Id",
                           "CDN-Loop", "X-Original-Host", "X-Original-URL", "X-Request-Start"}) {
    http::Request request;
    request.headers.add(name, "x");
    EXPECT_TRUE(came_by_proxy(request)) << name;
  }
  for (const char* name : {"X-Request-Id", "X-Originating", "Traceparent", "User-Agent"}) {
    http::Request request;
    request.headers.add(name, "x");
    EXPECT_FALSE(came_by_proxy(request)) << name;
  }
  http::Request old;
  old.http_1_0 = true;
  EXPECT_TRUE(came_by_proxy(old));
}

TEST(Site, of_two_origins_none_is_believed) {
  http::Request request;
  EXPECT_TRUE(check_one_origin(request));
  request.headers.add("Origin", "http://a");
  EXPECT_TRUE(check_one_origin(request));
  request.headers.add("origin", "http://a");
  EXPECT_EQ(check_one_origin(request).error().code, Code::InvalidArgument);
}

}  // namespace
}  // namespace flotilla::gateway
