#include <filesystem>
#include <unistd.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/server.h"
#include "http/test_certificate.h"
#include "http/test_loop.h"

namespace flotilla::http {
namespace {

using namespace std::chrono_literals;

namespace asio = boost::asio;
namespace ssl_error = asio::ssl::error;
using asio::ip::tcp;
using boost::system::error_code;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// A client that trusts everybody and speaks bytes through TLS.
struct TlsClient {
  explicit TlsClient(TestLoop& on) : loop(on), context(asio::ssl::context::tls_client) {}

  error_code connect(std::uint16_t port) {
    stream = std::make_unique<asio::ssl::stream<tcp::socket>>(loop.context, context);
    stream->lowest_layer().connect({asio::ip::address_v4::loopback(), port});
    return loop.run(shake_hands(*stream));
  }
  error_code send(std::string bytes) { return loop.run(write(*stream, std::move(bytes))); }
  // What comes until `end` has come, or the connection's end, of which `ended` tells.
  std::string read_to(std::string end) { return loop.run(read(*stream, std::move(end), ended)); }
  std::string read_all() { return read_to(""); }
  std::string name() const {
    X509* shown = SSL_get1_peer_certificate(stream->native_handle());
    std::array<char, 100> text{};
    X509_NAME_get_text_by_NID(X509_get_subject_name(shown), NID_commonName, text.data(), 100);
    X509_free(shown);
    return text.data();
  }

  static Awaitable<error_code> shake_hands(asio::ssl::stream<tcp::socket>& stream) {
    const auto [error] = co_await stream.async_handshake(asio::ssl::stream_base::client, kAwait);
    co_return error;
  }
  static Awaitable<error_code> write(asio::ssl::stream<tcp::socket>& stream, std::string bytes) {
    const auto [error, sent] = co_await asio::async_write(stream, asio::buffer(bytes), kAwait);
    co_return error;
  }
  static Awaitable<std::string> read(asio::ssl::stream<tcp::socket>& stream, std::string end,
                                     error_code& ended) {
    std::string out;
    while (end.empty() || out.find(end) == std::string::npos) {
      std::array<char, 4096> bytes;
      const auto [error, got] = co_await stream.async_read_some(asio::buffer(bytes), kAwait);
      out.append(bytes.data(), got);
      ended = error;
      if (error) break;
    }
    co_return out;
  }

  TestLoop& loop;
  asio::ssl::context context;
  std::unique_ptr<asio::ssl::stream<tcp::socket>> stream;
  error_code ended;
};

struct ServerTlsTest : testing::Test {
  TestLoop loop;
  ServerOptions options;
  std::unique_ptr<Server> server;
  std::uint16_t port = 0;
  int begun = 0;
  int gone = 0;
  int ended = 0;
  bool by_tls = false;
  bool go_on = false;  // what /steps waits for

  static Certificate make_certificate(const char* name) {
    const std::string path = testing::TempDir() + "/flotilla-server-" + std::to_string(::getpid());
    const TestCertificate made(name);
    made.write_certificate(path + ".crt");
    made.write_key(path + ".key");
    Certificate certificate = *CertificateFiles(path + ".crt", path + ".key").read();
    std::filesystem::remove(path + ".crt");
    std::filesystem::remove(path + ".key");
    return certificate;
  }

  void start() {
    server = std::make_unique<Server>(
        loop.executor(), [this](Exchange& exchange) { return handle(this, exchange); }, options);
    server->use(make_certificate("one.example"));
    port = *server->listen_tcp("127.0.0.1", 0);
  }

  static Awaitable<void> wait_for(ServerTlsTest* test, const bool& condition) {
    asio::steady_timer timer(test->loop.context);
    while (!condition) {
      timer.expires_after(1ms);
      co_await timer.async_wait(kAwait);
    }
  }

  static Awaitable<void> handle(ServerTlsTest* test, Exchange& exchange) {
    const Request request = exchange.take_request();
    ++test->begun;
    test->by_tls = request.by_tls;
    bool left = false;
    exchange.on_client_gone([test, &left] {
      ++test->gone;
      left = true;
    });
    if (request.path() == "/wait") {
      co_await wait_for(test, left);
    } else if (request.path() == "/steps") {
      co_await exchange.start(200, Headers());
      co_await exchange.write("one");
      co_await wait_for(test, test->go_on);
      co_await exchange.write("two");
      co_await exchange.finish();
    } else if (request.path() == "/cut") {
      co_await exchange.start(200, Headers());
      co_await exchange.write("one");
      exchange.abort();
    } else {
      Response response;
      response.body = request.target + "|" + request.body;
      co_await exchange.respond(std::move(response));
    }
    ++test->ended;
  }
};

std::string get(const std::string& target) {
  return "GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n";
}

std::string post(const std::string& body, const std::string& fields = "") {
  return "POST /b HTTP/1.1\r\nHost: a\r\n" + fields +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST_F(ServerTlsTest, answers_one_request_after_the_other) {
  start();
  TlsClient client(loop);
  ASSERT_FALSE(client.connect(port));
  EXPECT_EQ(client.name(), "one.example");
  client.send(get("/a"));
  EXPECT_THAT(client.read_to("/a|"), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(by_tls);
  client.send(post("xyz"));
  EXPECT_THAT(client.read_to("/b|xyz"), StartsWith("HTTP/1.1 200"));
  client.send(get("/c") + get("/d"));
  EXPECT_THAT(client.read_to("/d|"), HasSubstr("/c|"));
  EXPECT_EQ(gone, 0);
}

TEST_F(ServerTlsTest, large_bodies_pass_both_ways) {
  start();
  TlsClient client(loop);
  ASSERT_FALSE(client.connect(port));
  std::string body(3'000'000, 'x');
  for (std::size_t i = 0; i < body.size(); i += 7) body[i] = static_cast<char>('a' + i % 26);
  client.send(post(body, "Connection: close\r\n"));
  const std::string answer = client.read_all();
  EXPECT_TRUE(answer.ends_with("/b|" + body));
  EXPECT_EQ(client.ended, asio::error::eof) << "an end with the server's word";
}

TEST_F(ServerTlsTest, a_cut_answer_ends_without_the_servers_word) {
  start();
  TlsClient client(loop);
  ASSERT_FALSE(client.connect(port));
  client.send(get("/cut"));
  EXPECT_THAT(client.read_all(), EndsWith("one\r\n"));
  EXPECT_EQ(client.ended, ssl_error::stream_truncated);
}

TEST_F(ServerTlsTest, a_client_that_goes_is_gone_whether_it_says_so_or_not) {
  start();
  for (const bool says_so : {true, false}) {
    begun = gone = ended = 0;
    TlsClient client(loop);
    ASSERT_FALSE(client.connect(port));
    client.send(get("/wait"));
    loop.run_until([&] { return begun == 1; });
    loop.run_for(2ms);
    EXPECT_EQ(gone, 0);
    if (says_so) {
      SSL_set_quiet_shutdown(client.stream->native_handle(), 0);
      bool said = false;
      client.stream->async_shutdown([&](const error_code&) { said = true; });
      loop.run_until([&] { return ended == 1; });
      loop.run_until([&] { return said; });
    } else {
      client.stream->lowest_layer().close();
      loop.run_until([&] { return ended == 1; });
    }
    EXPECT_EQ(gone, 1);
    loop.run_until([&] { return server->connections() == 0; });
  }
}

TEST_F(ServerTlsTest, a_new_certificate_is_for_new_connections_and_cuts_no_stream) {
  start();
  TlsClient old(loop);
  ASSERT_FALSE(old.connect(port));
  old.send(get("/steps"));
  EXPECT_THAT(old.read_to("one"), StartsWith("HTTP/1.1 200"));
  server->use(make_certificate("two.example"));
  TlsClient fresh(loop);
  ASSERT_FALSE(fresh.connect(port));
  EXPECT_EQ(fresh.name(), "two.example");
  go_on = true;
  EXPECT_THAT(old.read_to("0\r\n\r\n"), HasSubstr("two"));
  old.send(get("/again"));
  EXPECT_THAT(old.read_to("/again|"), StartsWith("HTTP/1.1 200"));
}

TEST_F(ServerTlsTest, plain_http_is_told_to_use_https) {
  start();
  const auto channel = loop.connect(port);
  loop.send(channel, get("/"));
  EXPECT_THAT(loop.read_all(channel),
              AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("speaks TLS; use https://")));
  EXPECT_EQ(begun, 0);
}

TEST_F(ServerTlsTest, older_tls_and_other_protocols_are_refused) {
  start();
  TlsClient old(loop);
  SSL_CTX_set_security_level(old.context.native_handle(), 0);
  SSL_CTX_set_min_proto_version(old.context.native_handle(), TLS1_1_VERSION);
  SSL_CTX_set_max_proto_version(old.context.native_handle(), TLS1_1_VERSION);
  EXPECT_TRUE(old.connect(port));
  TlsClient http2(loop);
  SSL_CTX_set_alpn_protos(http2.context.native_handle(),
                          reinterpret_cast<const unsigned char*>("\x02h2"), 3);
  EXPECT_TRUE(http2.connect(port));
  TlsClient both(loop);
  SSL_CTX_set_max_proto_version(both.context.native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_alpn_protos(both.context.native_handle(),
                          reinterpret_cast<const unsigned char*>("\x02h2\x08http/1.1"), 12);
  EXPECT_FALSE(both.connect(port));
  const unsigned char* chosen = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(both.stream->native_handle(), &chosen, &size);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(chosen), size), "http/1.1");
  loop.run_until([&] { return server->connections() == 1; });
}

TEST_F(ServerTlsTest, slow_handshakes_end_and_keep_nobody_out) {
  options.handshakes_max = 2;
  options.handshake_timeout = 5s;
  start();
  std::vector<std::shared_ptr<Channel>> silent;
  for (int i = 0; i < 3; ++i) {
    silent.push_back(loop.connect(port));
    loop.run_until([&] { return server->connections() >= std::min(i + 1, 2); });
  }
  loop.run_until([&] { return server->connections() == 2; });
  EXPECT_EQ(loop.read_all(silent[0]), "") << "the oldest made way";
  TlsClient client(loop);
  ASSERT_FALSE(client.connect(port));
  client.send(get("/a"));
  EXPECT_THAT(client.read_to("/a|"), StartsWith("HTTP/1.1 200"));
}

TEST_F(ServerTlsTest, a_handshake_has_its_time) {
  options.handshake_timeout = 30ms;
  start();
  const auto silent = loop.connect(port);
  const auto dripping = loop.connect(port);
  loop.send(dripping, "\x16\x03\x01");
  EXPECT_EQ(loop.read_all(silent), "");
  EXPECT_EQ(loop.read_all(dripping), "");
  loop.run_until([&] { return server->connections() == 0; });
}

TEST_F(ServerTlsTest, a_body_that_makes_room_for_another_connection_is_told_so) {
  options.connections_max = 1;
  start();
  TlsClient begun_body(loop);
  ASSERT_FALSE(begun_body.connect(port));
  begun_body.send("POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx");
  loop.run_for(5ms);
  TlsClient client(loop);
  ASSERT_FALSE(client.connect(port));
  EXPECT_THAT(begun_body.read_all(), StartsWith("HTTP/1.1 408"));
  client.send(get("/a"));
  EXPECT_THAT(client.read_to("/a|"), StartsWith("HTTP/1.1 200"));
}

TEST_F(ServerTlsTest, a_slow_reader_is_gone_after_the_stall) {
  options.write_stall = 30ms;
  start();
  TlsClient client(loop);
  ASSERT_FALSE(client.connect(port));
  std::string body;
  body.resize(10'000'000, 'x');
  client.send(post(body));
  loop.run_until([&] { return ended == 1; });
  loop.run_until([&] { return server->connections() == 0; });
}

}  // namespace
}  // namespace flotilla::http
