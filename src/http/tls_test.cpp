#include <cstdlib>
#include <filesystem>
#include <unistd.h>

#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "http/client.h"
#include "http/test_certificate.h"
#include "http/test_loop.h"

namespace flotilla::http {
namespace {

using namespace std::chrono_literals;

namespace asio = boost::asio;
using asio::ip::tcp;

// One trusted certificate for "localhost", one of the same name that nobody trusts.
struct TlsTest : testing::Test {
  static void SetUpTestSuite() {
    if (trusted) return;  // a repeated run: the store is that of the first
    trusted = new TestCertificate("localhost");
    stranger = new TestCertificate("localhost");
    const std::string path = testing::TempDir() + "/flotilla-tls-" + std::to_string(::getpid());
    trusted->write_certificate(path);
    ::setenv("SSL_CERT_FILE", path.c_str(), 1);
    // The store is read once: by this request, which need not succeed.
    TestLoop loop;
    TlsTest::fetch_from(loop, *trusted, "localhost", "");
    std::filesystem::remove(path);
  }
  struct Outcome {
    Result<Response> response;
    std::string sni;
  };

  static Awaitable<void> serve(std::shared_ptr<tcp::acceptor> acceptor, const TestCertificate* who,
                               std::string answer, std::string* sni) {
    asio::ssl::context context(asio::ssl::context::tls_server);
    SSL_CTX_use_certificate(context.native_handle(), who->certificate);
    SSL_CTX_use_PrivateKey(context.native_handle(), who->key);
    auto [error, socket] = co_await acceptor->async_accept(kAwait);
    if (error) co_return;
    asio::ssl::stream<tcp::socket> stream(std::move(socket), context);
    const auto [failed] = co_await stream.async_handshake(asio::ssl::stream_base::server, kAwait);
    if (failed) co_return;
    if (const char* name = SSL_get_servername(stream.native_handle(), TLSEXT_NAMETYPE_host_name)) {
      *sni = name;
    }
    std::array<char, 4096> bytes;
    co_await stream.async_read_some(asio::buffer(bytes), kAwait);
    co_await asio::async_write(stream, asio::buffer(answer), kAwait);
    // No close_notify: the stream ends as if it were cut.
  }

  static Outcome fetch_from(TestLoop& loop, const TestCertificate& who, std::string host,
                            std::string answer) {
    const auto acceptor = std::make_shared<tcp::acceptor>(
        loop.context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    std::string sni;
    bool served = false;
    asio::co_spawn(loop.context, serve(acceptor, &who, std::move(answer), &sni),
                   [&](std::exception_ptr) { served = true; });
    Endpoint endpoint;
    endpoint.host = std::move(host);
    endpoint.port = acceptor->local_endpoint().port();
    endpoint.tls = true;
    Client client(loop.executor(), endpoint);
    Request request;
    auto response = loop.run(client.fetch(request, std::chrono::seconds(5)));
    loop.run_until([&] { return served; });
    return {.response = std::move(response), .sni = std::move(sni)};
  }

  TestLoop loop;
  inline static const TestCertificate* trusted = nullptr;
  inline static const TestCertificate* stranger = nullptr;
};

constexpr const char* kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST_F(TlsTest, speaks_to_a_trusted_server_by_name) {
  const Outcome outcome = fetch_from(loop, *trusted, "localhost", kAnswer);
  ASSERT_TRUE(outcome.response) << outcome.response.error().message;
  EXPECT_EQ(outcome.response->body, "ok");
  EXPECT_EQ(outcome.sni, "localhost");
}

TEST_F(TlsTest, refuses_another_name_and_an_unknown_issuer) {
  const Outcome name = fetch_from(loop, *trusted, "127.0.0.1", kAnswer);
  ASSERT_FALSE(name.response);
  EXPECT_EQ(name.response.error().reason, "connect");
  const Outcome issuer = fetch_from(loop, *stranger, "localhost", kAnswer);
  ASSERT_FALSE(issuer.response);
  EXPECT_EQ(issuer.response.error().reason, "connect");
}

TEST_F(TlsTest, an_end_without_close_notify_is_a_cut_body) {
  const Outcome outcome = fetch_from(loop, *trusted, "localhost", "HTTP/1.1 200 OK\r\n\r\nok");
  ASSERT_FALSE(outcome.response);
  EXPECT_EQ(outcome.response.error().code, Code::Unavailable);
}

}  // namespace
}  // namespace flotilla::http
