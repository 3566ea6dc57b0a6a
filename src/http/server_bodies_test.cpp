#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/test_loop.h"

// Who may have how much of the server with bodies that are not whole, or not answered.
namespace flotilla::http {
namespace {

using namespace std::chrono_literals;

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kEnd = "; end";  // of each answer

struct ServerBodiesTest : testing::Test {
  TestLoop loop;
  ServerOptions options;
  std::unique_ptr<Server> server;
  std::uint16_t port = 0;
  int answered = 0;

  void SetUp() override {
    options.small_body_bytes = 100;
    options.error_response = [](int status, std::string_view message, std::string_view path) {
      return json_response(status, fmt::format("{} at {}{}", message, path, kEnd));
    };
    options.admit_body = [](Exchange& exchange) -> Awaitable<BodyPermit> {
      BodyPermit permit{.bytes_max = 1 << 20};
      permit.key = std::string(exchange.request().headers.find("x-api-key").value_or(""));
      co_return permit;
    };
  }

  void start() {
    server = std::make_unique<Server>(
        loop.executor(), [this](Exchange& exchange) { return handle(this, exchange); }, options);
    port = *server->listen_tcp("127.0.0.1", 0);
  }

  // "got N;", but at /wait not before the client has gone.
  static Awaitable<void> handle(ServerBodiesTest* test, Exchange& exchange) {
    const Request request = exchange.take_request();
    ++test->answered;
    boost::asio::steady_timer pause(test->loop.context);
    while (request.path() == "/wait" && !exchange.client_gone()) {
      pause.expires_after(1ms);
      co_await pause.async_wait(kAwait);
    }
    Response response;
    response.body = fmt::format("got {}{}", request.body.size(), kEnd);
    co_await exchange.respond(std::move(response));
  }

  std::shared_ptr<Channel> send(std::string bytes) {
    const auto channel = loop.connect(port);
    loop.send(channel, std::move(bytes));
    loop.run_for(2ms);
    return channel;
  }
  std::string answer(const std::shared_ptr<Channel>& channel) {
    return loop.read_to(channel, kEnd);
  }
};

std::string head(const char* path, const char* key, std::size_t bytes) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: a\r\nx-api-key: {}\r\nContent-Length: {}\r\n\r\n",
                     path, key, bytes);
}

std::string whole(const char* path, const char* key, std::size_t bytes) {
  return head(path, key, bytes) + std::string(bytes, 'x');
}

TEST_F(ServerBodiesTest, a_key_has_its_share_from_the_heads_on_and_no_other_key_feels_it) {
  options.bodies_max_bytes_of_key = 1000;
  start();
  const auto promised = send(head("/p", "ann", 700));
  EXPECT_THAT(answer(send(head("/p", "ann", 700))),
              AllOf(StartsWith("HTTP/1.1 429"), HasSubstr("Retry-After: 1"),
                    HasSubstr("may have 1000 bytes together"), HasSubstr(" at /p")));
  EXPECT_THAT(answer(send(whole("/p", "ann", 300))), HasSubstr("got 300;"));
  EXPECT_THAT(answer(send(whole("/p", "bob", 700))), HasSubstr("got 700;"));
  EXPECT_THAT(answer(send(whole("/p", "", 5000))), HasSubstr("got 5000;"));
  loop.send(promised, std::string(700, 'x'));
  EXPECT_THAT(answer(promised), HasSubstr("got 700;"));
  EXPECT_THAT(answer(send(whole("/p", "ann", 1000))), HasSubstr("got 1000;"));
}

TEST_F(ServerBodiesTest, a_keys_small_bodies_pass_whatever_else_it_sends) {
  options.bodies_max_bytes_of_key = 1000;
  start();
  const auto promised = send(head("/p", "ann", 1000));
  EXPECT_THAT(answer(send(whole("/p", "ann", 100))), HasSubstr("got 100;"));
  EXPECT_THAT(answer(send(whole("/p", "ann", 101))), StartsWith("HTTP/1.1 429"));
}

TEST_F(ServerBodiesTest, a_keys_body_counts_until_it_is_answered) {
  options.bodies_max_bytes_of_key = 1000;
  start();
  const auto slow = send(whole("/wait", "ann", 700));
  loop.run_until([this] { return answered == 1; });
  EXPECT_THAT(answer(send(head("/p", "ann", 700))), StartsWith("HTTP/1.1 429"));
  slow->close();
  loop.run_until([this] { return server->connections() == 0; });
  EXPECT_THAT(answer(send(whole("/p", "ann", 700))), HasSubstr("got 700;"));
}

TEST_F(ServerBodiesTest, chunks_count_for_a_key_as_they_come) {
  options.bodies_max_bytes_of_key = 1000;
  start();
  const std::string chunked =
      "POST /p HTTP/1.1\r\nHost: a\r\nx-api-key: ann\r\nTransfer-Encoding: chunked\r\n\r\n"
      "258\r\n" +
      std::string(600, 'x') + "\r\n";
  const auto first = send(chunked);
  EXPECT_THAT(answer(send(chunked)), StartsWith("HTTP/1.1 429"));
  EXPECT_THAT(answer(send(head("/p", "ann", 401))), StartsWith("HTTP/1.1 429"));
  loop.send(first, "0\r\n\r\n");
  EXPECT_THAT(answer(first), HasSubstr("got 600;"));
}

TEST_F(ServerBodiesTest, what_was_only_promised_is_nothing_to_other_keys_and_networks) {
  options.bodies_max_bytes = 1000;
  options.bodies_max_bytes_of_network = 1000;
  start();
  const auto promised = send(head("/p", "ann", 900));
  EXPECT_THAT(answer(send(whole("/p", "bob", 900))), HasSubstr("got 900;"));
  loop.send(promised, std::string(800, 'x'));
  loop.run_for(2ms);
  EXPECT_THAT(answer(send(whole("/p", "bob", 900))), StartsWith("HTTP/1.1 503"));
}

}  // namespace
}  // namespace flotilla::http
