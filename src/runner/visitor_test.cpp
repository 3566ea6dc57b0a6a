#include "runner/visitor.h"

#include <gtest/gtest.h>

namespace flotilla::runner {
namespace {

Result<void> check(const char* host, const char* type = "application/json",
                   const char* target = "/v1/chat/completions", const char* peer = "127.0.0.1") {
  http::Request request;
  request.method = "POST";
  request.target = target;
  request.peer = peer;
  request.headers.add("Host", host);
  request.headers.add("Content-Type", type);
  return check_visitor(request);
}

TEST(Visitor, CallsThisMachineByLocalhostOrAnAddress) {
  for (const char* host :
       {"localhost", "LOCALHOST:8081", "127.0.0.1:8081", "[::1]:8081", "[::1]", "192.0.2.7:1"}) {
    EXPECT_TRUE(check(host)) << host;
  }
  for (const char* host :
       {"evil.example", "evil.example:8081", "localhost.evil.example", "", "[::1].evil.example",
        "127.0.0.1:8081:evil", "127.0.0.1:x", "localhost:", "[::1", "127.0.0.1.evil.example"}) {
    const auto may = check(host);
    ASSERT_FALSE(may) << host;
    EXPECT_EQ(may.error().code, Code::PermissionDenied);
  }
}

TEST(Visitor, SendsJsonAndDoesNotDrain) {
  EXPECT_TRUE(check("localhost", "application/json; charset=utf-8"));
  EXPECT_EQ(check("localhost", "text/plain").error().code, Code::UnsupportedMedia);
  EXPECT_EQ(check("localhost", "application/json", "/runner/drain").error().code,
            Code::PermissionDenied);
}

TEST(Visitor, ByTheUnixSocketMayAll) {
  EXPECT_TRUE(check("flotilla", "", "/runner/drain", "unix"));
}

}  // namespace
}  // namespace flotilla::runner
