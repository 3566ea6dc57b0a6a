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
      permit.headers.set("x-left", "3");
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
              AllOf(StartsWith("HTTP/1.1 429"), HasSubstr("Retry-After: 1"), HasSubstr("x-left: 3"),
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

TEST_F(ServerBodiesTest, a_body_that_drips_is_ended_when_its_time_is_over) {
  options.body_pace = 40ms;
  start();
  const auto channel = send(head("/p", "ann", 100'000));
  const Instant begin = SystemClock().now();
  bool over = false;
  std::string said;
  while (!over && SystemClock().now() - begin < 5s) {
    loop.send(channel, "x");
    loop.run_for(2ms);
    std::array<char, 500> bytes;
    const Channel::Read read = channel->try_read(bytes);
    said.append(bytes.data(), read.got);
    over = read.io != Io::Ok || read.got > 0;
  }
  EXPECT_THAT(said, AllOf(StartsWith("HTTP/1.1 408"), HasSubstr("Connection: close")));
  EXPECT_LT(SystemClock().now() - begin, 2s);
}

TEST_F(ServerBodiesTest, a_body_that_comes_on_has_time_for_each_part) {
  options.body_pace = 200ms;
  options.body_pace_bytes = 1000;
  start();
  const Instant begin = SystemClock().now();
  const auto channel = send(head("/p", "ann", 20'000));
  for (int i = 0; i < 20; ++i) {
    loop.run_for(20ms);
    loop.send(channel, std::string(1000, 'x'));
  }
  EXPECT_THAT(answer(channel), HasSubstr("got 20000;"));
  EXPECT_GT(SystemClock().now() - begin, 400ms) << "longer than one part may take";
}

// One address must not hold places by beginning bodies.
TEST_F(ServerBodiesTest, beyond_the_cap_the_body_that_has_not_come_on_for_longest_makes_room) {
  options.connections_max = 2;
  options.body_pace_bytes = 1000;
  start();
  const auto first = send(head("/p", "", 2000) + "x");
  const auto second = send(head("/p", "", 2000) + "x");
  loop.send(first, std::string(999, 'x'));
  loop.run_for(2ms);
  EXPECT_THAT(answer(send(whole("/p", "", 5))), HasSubstr("got 5;"));
  EXPECT_THAT(loop.read_all(second),
              AllOf(StartsWith("HTTP/1.1 408"), HasSubstr("waited for a connection at /p"),
                    HasSubstr("Connection: close")));
  loop.send(first, std::string(1000, 'x'));
  EXPECT_THAT(answer(first), HasSubstr("got 2000;"));
}

TEST_F(ServerBodiesTest, a_network_that_begins_bodies_makes_room_among_its_own) {
  options.connections_max_of_network = 1;
  start();
  const auto first = send(head("/p", "", 2000) + "x");
  EXPECT_THAT(answer(send(whole("/p", "", 5))), HasSubstr("got 5;"));
  EXPECT_THAT(loop.read_all(first), StartsWith("HTTP/1.1 408"));
}

TEST_F(ServerBodiesTest, who_was_refused_and_goes_on_sending_makes_room) {
  options.connections_max = 1;
  start();
  const auto refused = send(head("/p", "", 2 << 20));
  EXPECT_THAT(answer(refused), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(answer(send(whole("/p", "", 5))), HasSubstr("got 5;"));
  EXPECT_EQ(loop.read_all(refused), "");
}

}  // namespace
}  // namespace flotilla::http
