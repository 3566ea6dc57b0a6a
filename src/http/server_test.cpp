#include "http/server.h"

#include <filesystem>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/test_loop.h"

namespace flotilla::http {
namespace {

using namespace std::chrono_literals;

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// What the handlers of these tests did and saw.
struct Seen {
  std::vector<std::string> requests;
  int gone = 0;
  int ended = 0;
  std::vector<bool> writes;
  std::string peer;
  std::string sender;
};

struct ServerTest : testing::Test {
  TestLoop loop;
  Seen seen;
  ServerOptions options;
  std::unique_ptr<Server> server;
  std::uint16_t port = 0;

  void SetUp() override {
    options.error_response = [](int status, std::string_view message, std::string_view) {
      return json_response(status, "{\"error\":\"" + std::string(message) + "\"}");
    };
  }

  void start() {
    server = std::make_unique<Server>(
        loop.executor(), [this](Exchange& exchange) { return handle(this, exchange); }, options);
    port = *server->listen_tcp("127.0.0.1", 0);
  }

  static Awaitable<void> sleep(TestLoop& loop, Duration time) {
    boost::asio::steady_timer timer(loop.context, time);
    co_await timer.async_wait(kAwait);
  }

  static Awaitable<void> handle(ServerTest* test, Exchange& exchange) {
    Seen& seen = test->seen;
    const Request request = exchange.take_request();
    const std::string_view path = request.path();
    seen.requests.push_back(request.method + " " + request.target + " " + request.body);
    seen.peer = request.peer;
    if (const auto* sender = std::any_cast<std::string>(&request.sender)) seen.sender = *sender;
    exchange.on_client_gone([&seen] { ++seen.gone; });
    if (path == "/throw") throw std::runtime_error("on purpose");
    if (path == "/nothing") co_return;
    if (path == "/slow") co_await sleep(test->loop, 20ms);
    if (path == "/wait") {
      while (!exchange.client_gone()) co_await sleep(test->loop, 1ms);
      const bool written = co_await exchange.respond(Response());
      seen.writes.push_back(written);
    } else if (path == "/flood") {
      const std::string block(100'000, 'x');
      co_await exchange.start(200, Headers());
      while (true) {
        const bool written = co_await exchange.write(block);
        if (!written) break;
      }
      seen.writes.push_back(false);
    } else if (path.starts_with("/stream")) {
      Headers headers;
      headers.add("X-Evil", "a\r\nB: c");
      headers.add("Content-Length", "3");
      co_await exchange.start(200, std::move(headers));
      co_await exchange.write("one");
      co_await exchange.write("");
      if (path == "/stream-abort") {
        exchange.abort();
        const bool written = co_await exchange.write("two");
        seen.writes.push_back(written);
      } else if (path == "/stream-throw") {
        throw std::runtime_error("on purpose");
      } else {
        co_await exchange.write("+two");
        co_await exchange.finish();
      }
    } else {
      Response response;
      response.body = request.target + "|" + request.body;
      co_await exchange.respond(std::move(response));
    }
    ++seen.ended;
  }

  std::string talk(std::string bytes) {
    const auto channel = loop.connect(port);
    loop.send(channel, std::move(bytes));
    return loop.read_all(channel);
  }
};

std::string get(std::string target, std::string fields = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

TEST_F(ServerTest, answers_pipelined_requests_in_order) {
  start();
  const std::string answer =
      talk(get("/slow") + "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxyz\r\n" +
           "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n" +
           get("/d", "Connection: close\r\n") + get("/not-read"));
  EXPECT_EQ(seen.requests,
            (std::vector<std::string>{"GET /slow ", "POST /b xyz", "POST /c hi", "GET /d "}));
  const auto at = [&](const char* body) { return answer.find(body); };
  EXPECT_LT(at("/slow|"), at("/b|xyz"));
  EXPECT_LT(at("/b|xyz"), at("/c|hi"));
  EXPECT_LT(at("/c|hi"), at("/d|"));
  EXPECT_THAT(answer, EndsWith("/d|"));
  EXPECT_EQ(seen.gone, 0);
}

TEST_F(ServerTest, reads_a_request_at_every_border) {
  start();
  const std::string text =
      "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
      "3\r\nxyz\r\n0\r\n\r\n";
  for (std::size_t cut = 1; cut < text.size(); ++cut) {
    const auto channel = loop.connect(port);
    loop.send(channel, text.substr(0, cut));
    loop.context.restart();
    loop.context.poll();
    loop.send(channel, text.substr(cut));
    ASSERT_THAT(loop.read_all(channel), EndsWith("/b|xyz")) << cut;
  }
}

TEST_F(ServerTest, refuses_malformed_requests_in_the_callers_form_and_closes) {
  options.body_max_bytes = 10;
  options.header_max_bytes = 1000;
  start();
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  const std::pair<std::string, const char*> cases[] = {
      {post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
      {post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", "400"},
      {post + "Content-Length : 3\r\n\r\nabc", "400"},
      {post + "A: b\r\n c\r\n\r\n", "400"},
      {"GET / HTTP/1.1\nHost: a\n\n", "400"},
      {"\x16\x03\x01\x02", "400"},
      {"GET / HTTP/1.1\r\n\r\n", "400"},
      {post + "Transfer-Encoding: chunked\r\n\r\n3\nabc", "400"},
      {post + "Transfer-Encoding: chunked\r\n\r\nz\r\n", "400"},
      {post + "Content-Length: 11\r\n\r\n", "413"},
      {post + "Content-Length: 11\r\nExpect: 100-continue\r\n\r\n", "413"},
      {post + "Transfer-Encoding: chunked\r\n\r\nb\r\n01234567890", "413"},
      {post + "A: " + std::string(2000, 'x') + "\r\n\r\n", "431"},
      {"GET /" + std::string(2000, 'x'), "431"},
      {post + "Expect: nothing\r\n\r\n", "417"},
  };
  for (const auto& [bytes, status] : cases) {
    // A whole request behind it must not be served: its border is in doubt.
    const auto channel = loop.connect(port);
    loop.send(channel, bytes);
    const std::string head = loop.read_to(channel, "\"}");
    EXPECT_THAT(head, AllOf(StartsWith("HTTP/1.1 " + std::string(status)),
                            HasSubstr("Connection: close\r\n"),
                            HasSubstr("Content-Type: application/json"), HasSubstr("{\"error\":")))
        << bytes;
    loop.send(channel, get("/smuggled"));
    channel->shut_write();
    EXPECT_EQ(loop.read_all(channel), "");
  }
  EXPECT_EQ(seen.requests, std::vector<std::string>());
  loop.run_until([&] { return server->connections() == 0; });
}

TEST_F(ServerTest, a_refused_client_that_goes_on_sending_still_reads_the_answer) {
  options.body_max_bytes = 1000;
  start();
  const auto channel = loop.connect(port);
  loop.send(channel, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n");
  for (int i = 0; i < 90; ++i) loop.send(channel, std::string(100'000, 'x'));
  EXPECT_THAT(loop.read_to(channel, "\"}"), StartsWith("HTTP/1.1 413"));
}

TEST_F(ServerTest, two_empty_lines_may_come_before_a_head_and_no_more) {
  start();
  EXPECT_THAT(talk("\r\n\r\n" + get("/x", "Connection: close\r\n")), EndsWith("/x|"));
  const auto channel = loop.connect(port);
  loop.send(channel, "\r\n\r\n\r\n" + get("/y"));
  EXPECT_THAT(loop.read_to(channel, "\"}"), StartsWith("HTTP/1.1 400"));
}

TEST_F(ServerTest, a_body_whose_bytes_are_always_there_is_held_to_its_time_too) {
  options.body_timeout = 0ms;
  start();
  const auto channel = loop.connect(port);
  // What comes with the head needs no time.
  loop.send(channel, "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_THAT(loop.read_to(channel, "/p|abc"), StartsWith("HTTP/1.1 200"));
  loop.send(channel,
            "POST /q HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n" + std::string(9000, 'x'));
  EXPECT_THAT(loop.read_to(channel, "\"}"), StartsWith("HTTP/1.1 408"));
}

TEST_F(ServerTest, bounds_the_bodies_that_are_being_read) {
  options.bodies_max_bytes = 1000;
  options.small_body_bytes = 100;
  start();
  const std::string post = "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 700\r\n\r\n";
  const auto one = loop.connect(port);
  loop.send(one, post + std::string(600, 'x'));
  loop.run_for(1ms);
  const auto two = loop.connect(port);
  loop.send(two, post + std::string(600, 'x'));
  EXPECT_THAT(loop.read_to(two, "\"}"),
              AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: 1")));
  loop.send(one, std::string(100, 'x'));
  EXPECT_THAT(loop.read_to(one, "xxx"), StartsWith("HTTP/1.1 200"));
  const auto three = loop.connect(port);
  loop.send(three, post + std::string(700, 'x'));
  EXPECT_THAT(loop.read_to(three, "xxx"), StartsWith("HTTP/1.1 200"));
}

// Handlers keep bodies for another try: what waits for a place is what an overload is made of.
TEST_F(ServerTest, a_body_counts_until_its_request_is_answered) {
  options.bodies_max_bytes = 1000;
  options.small_body_bytes = 100;
  start();
  const auto post = [](const char* path, std::size_t bytes) {
    return fmt::format("POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{}", path, bytes,
                       std::string(bytes, 'x'));
  };
  const auto one = loop.connect(port);
  loop.send(one, post("/wait", 600));
  loop.run_until([&] { return !seen.requests.empty(); });
  const auto two = loop.connect(port);
  loop.send(two, post("/p", 600));
  EXPECT_THAT(loop.read_to(two, "\"}"), StartsWith("HTTP/1.1 503"));
  const auto small = loop.connect(port);
  loop.send(small, post("/p", 100));
  EXPECT_THAT(loop.read_to(small, "xxx"), StartsWith("HTTP/1.1 200"));
  for (const auto& channel : {one, two, small}) channel->close();
  loop.run_until([&] { return server->connections() == 0; });
  const auto three = loop.connect(port);
  loop.send(three, post("/p", 600));
  EXPECT_THAT(loop.read_to(three, "xxx"), StartsWith("HTTP/1.1 200"));
}

TEST_F(ServerTest, of_the_bodies_that_are_being_read_a_network_has_its_part) {
  options.bodies_max_bytes_of_network = 1000;
  options.small_body_bytes = 100;
  options.trusted_proxies = {*AddressRange::parse("127.0.0.1")};
  start();
  const auto post = [](const char* from) {
    return "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 700\r\nX-Forwarded-For: " +
           std::string(from) + "\r\n\r\n";
  };
  const auto one = loop.connect(port);
  loop.send(one, post("2001:db8::1") + std::string(600, 'x'));
  loop.run_for(1ms);
  const auto two = loop.connect(port);
  loop.send(two, post("2001:db8::2") + std::string(600, 'x'));
  EXPECT_THAT(loop.read_to(two, "\"}"), StartsWith("HTTP/1.1 503"));
  const auto three = loop.connect(port);
  loop.send(three, post("2001:db8:0:1::1") + std::string(700, 'x'));
  EXPECT_THAT(loop.read_to(three, "xxx"), StartsWith("HTTP/1.1 200"));
  loop.send(one, std::string(100, 'x'));
  EXPECT_THAT(loop.read_to(one, "xxx"), StartsWith("HTTP/1.1 200"));
}

TEST_F(ServerTest, who_may_send_no_body_is_told_so_before_it_comes) {
  options.body_max_bytes = 1000;
  options.admit_body = [](Exchange& exchange) -> Awaitable<BodyPermit> {
    BodyPermit permit{.bytes_max = 5};
    if (exchange.request().path() == "/small") co_return permit;
    if (const auto key = exchange.request().headers.find("Authorization")) {
      permit = {.bytes_max = 1 << 20, .key = {}, .sender = std::string(*key)};
      co_return permit;
    }
    Response response = json_response(401, R"({"error":"no"})");
    co_await exchange.respond(std::move(response));
    co_return permit;
  };
  start();
  const std::string length = "Content-Length: 900\r\n";
  const auto head = [](const char* path, const std::string& fields) {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
  };
  for (const char* expect : {"", "Expect: 100-continue\r\n"}) {
    const auto channel = loop.connect(port);
    loop.send(channel, head("/x", length + expect));
    EXPECT_THAT(loop.read_to(channel, "no\"}"),
                AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("Connection: close")));
    loop.send(channel, std::string(900, 'x') + get("/smuggled"));
    channel->shut_write();
    EXPECT_EQ(loop.read_all(channel), "");
  }
  EXPECT_THAT(talk(head("/small", length)), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(talk(head("/small", "Transfer-Encoding: chunked\r\n") + "6\r\nsecret\r\n"),
              StartsWith("HTTP/1.1 413"));
  EXPECT_EQ(seen.requests, std::vector<std::string>());
  const std::string key = "Authorization: k\r\nConnection: close\r\n";
  EXPECT_THAT(talk(head("/y", key + "Content-Length: 3\r\n") + "abc"), EndsWith("/y|abc"));
  EXPECT_EQ(seen.sender, "k") << "who it is need not be found out again";
  EXPECT_THAT(talk(head("/y", key + "Content-Length: 1001\r\n")), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(talk(get("/nobody-asks", "Connection: close\r\n")), StartsWith("HTTP/1.1 200"));
}

TEST_F(ServerTest, a_body_keeps_its_pace) {
  options.body_pace = 20ms;
  start();
  EXPECT_THAT(talk("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n" +
                   std::string(100'000, 'x')),
              StartsWith("HTTP/1.1 408"));
}

TEST_F(ServerTest, ends_slow_heads_and_bodies_and_idle_connections) {
  options.head_timeout = 20ms;
  options.body_timeout = 20ms;
  options.idle_timeout = 20ms;
  start();
  EXPECT_EQ(talk(""), "");  // a silent one gets no answer
  EXPECT_THAT(talk("GET / HTTP"), StartsWith("HTTP/1.1 408"));
  EXPECT_THAT(talk("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab"),
              StartsWith("HTTP/1.1 408"));
  EXPECT_THAT(talk(get("/x")), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("/x|")));
}

TEST_F(ServerTest, a_head_that_drips_does_not_extend_its_time) {
  options.head_timeout = 40ms;
  start();
  const auto channel = loop.connect(port);
  const Instant begin = SystemClock().now();
  bool closed = false;
  for (int i = 0; i < 1000 && !closed; ++i) {
    loop.send(channel, i == 0 ? "G" : "E");
    loop.run_for(2ms);
    std::array<char, 200> bytes;
    const Channel::Read read = channel->try_read(bytes);
    closed = read.io != Io::Ok || read.got > 0;
  }
  EXPECT_TRUE(closed);
  EXPECT_LT(SystemClock().now() - begin, 1s);
}

TEST_F(ServerTest, answers_expect_continue) {
  start();
  const auto channel = loop.connect(port);
  loop.send(channel,
            "POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(loop.read_to(channel, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  loop.send(channel, "ok");
  EXPECT_THAT(loop.read_to(channel, "/e|ok"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(ServerTest, head_has_the_fields_and_no_body) {
  start();
  const std::string answer = talk("HEAD /h HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, AllOf(HasSubstr("Content-Length: 3\r\n"), EndsWith("\r\n\r\n")));
  EXPECT_THAT(talk("HEAD /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
              EndsWith("\r\n\r\n"));
}

TEST_F(ServerTest, streams_in_chunks_and_owns_the_framing) {
  start();
  const std::string answer = talk(get("/stream", "Connection: close\r\n"));
  EXPECT_THAT(answer, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(answer, HasSubstr("X-Evil: a  B: c\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(answer, HasSubstr("\r\nDate: "));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n3\r\none\r\n4\r\n+two\r\n0\r\n\r\n"));
}

TEST_F(ServerTest, streams_to_http_1_0_without_chunks_and_closes) {
  start();
  const std::string answer = talk("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(answer, AllOf(Not(HasSubstr("Transfer-Encoding")), HasSubstr("Connection: close"),
                            EndsWith("\r\n\r\none+two")));
}

TEST_F(ServerTest, a_closed_or_half_closed_client_is_gone_once) {
  start();
  for (const bool half : {true, false}) {
    seen = Seen();
    const auto channel = loop.connect(port);
    loop.send(channel, get("/wait"));
    loop.run_until([&] { return seen.requests.size() == 1; });
    EXPECT_EQ(seen.gone, 0);
    if (half) {
      channel->shut_write();
    } else {
      channel->close();
    }
    loop.run_until([&] { return seen.ended == 1; });
    EXPECT_EQ(seen.gone, 1);
    EXPECT_EQ(seen.writes, std::vector<bool>{false});
    loop.run_until([&] { return server->connections() == 0; });
  }
}

TEST_F(ServerTest, the_end_behind_a_pipelined_request_is_not_gone_but_a_reset_is) {
  start();
  const auto channel = loop.connect(port);
  loop.send(channel, get("/slow"));
  loop.run_until([&] { return seen.requests.size() == 1; });
  loop.send(channel, get("/second"));
  channel->shut_write();
  EXPECT_THAT(loop.read_all(channel), AllOf(HasSubstr("/slow|"), EndsWith("/second|")));
  EXPECT_EQ(seen.gone, 0);

  for (const bool at_once : {true, false}) {
    seen = Seen();
    const auto reset = loop.connect(port);
    loop.send(reset, get("/wait") + (at_once ? get("/never") : ""));
    loop.run_until([&] { return seen.requests.size() == 1; });
    if (!at_once) loop.send(reset, get("/never"));
    loop.run_for(1ms);
    reset->socket().set_option(boost::asio::socket_base::linger(true, 0));
    reset->close();
    loop.run_until([&] { return seen.ended == 1; });
    EXPECT_EQ(seen.gone, 1);
    EXPECT_EQ(seen.requests.size(), 1U);
  }
}

TEST_F(ServerTest, a_client_that_takes_nothing_is_gone_after_the_stall) {
  options.write_stall = 30ms;
  start();
  const auto channel = loop.connect(port);
  loop.send(channel, get("/flood"));
  loop.run_until([&] { return seen.ended == 1; });
  EXPECT_EQ(seen.writes, std::vector<bool>{false});
  loop.run_until([&] { return server->connections() == 0; });
}

TEST_F(ServerTest, a_failed_handler_is_500_or_a_cut) {
  start();
  EXPECT_THAT(talk(get("/throw")), AllOf(StartsWith("HTTP/1.1 500"), HasSubstr("{\"error\":")));
  EXPECT_THAT(talk(get("/nothing")), StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(talk(get("/stream-throw")), EndsWith("\r\n\r\n3\r\none\r\n"));
  EXPECT_THAT(talk(get("/stream-abort")), EndsWith("\r\n\r\n3\r\none\r\n"));
  EXPECT_EQ(seen.writes, std::vector<bool>{false});
  EXPECT_EQ(seen.gone, 0);
}

TEST_F(ServerTest, beyond_the_cap_who_says_nothing_makes_room) {
  options.connections_max = 2;
  start();
  const auto silent = loop.connect(port);
  loop.run_until([&] { return server->connections() == 1; });
  const auto busy = loop.connect(port);
  loop.send(busy, get("/wait"));
  loop.run_until([&] { return seen.requests.size() == 1; });
  EXPECT_THAT(talk(get("/x", "Connection: close\r\n")), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(loop.read_all(silent), "");
  EXPECT_EQ(seen.gone, 0);
  busy->close();
  loop.run_until([&] { return server->connections() == 0; });
}

TEST_F(ServerTest, refuses_connections_beyond_the_cap_where_all_are_busy) {
  options.connections_max = 2;
  start();
  const auto one = loop.connect(port);
  const auto two = loop.connect(port);
  loop.send(one, get("/wait"));
  loop.send(two, get("/wait"));
  loop.run_until([&] { return seen.requests.size() == 2; });
  const auto three = loop.connect(port);
  EXPECT_THAT(loop.read_all(three), StartsWith("HTTP/1.1 503"));
  one->close();
  loop.run_until([&] { return server->connections() == 1; });
  EXPECT_THAT(talk(get("/x", "Connection: close\r\n")), StartsWith("HTTP/1.1 200"));
  two->close();
  loop.run_until([&] { return server->connections() == 0; });
}

TEST_F(ServerTest, a_network_has_its_part_of_the_connections_and_makes_room_among_its_own) {
  options.connections_max_of_network = 1;
  start();
  boost::asio::ip::tcp::socket other(loop.executor());
  other.open(boost::asio::ip::tcp::v4());
  other.bind({boost::asio::ip::make_address_v4("127.0.0.9"), 0});
  other.connect({boost::asio::ip::address_v4::loopback(), port});
  const auto theirs = std::make_shared<Channel>(Socket(std::move(other)));
  loop.run_until([&] { return server->connections() == 1; });
  const auto first = loop.connect(port);
  loop.run_until([&] { return server->connections() == 2; });
  EXPECT_THAT(talk(get("/x", "Connection: close\r\n")), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(loop.read_all(first), "");
  loop.send(theirs, get("/y", "Connection: close\r\n"));
  EXPECT_THAT(loop.read_all(theirs), StartsWith("HTTP/1.1 200"));
}

// Waits for the end of the descriptors of the process.
TEST_F(ServerTest, without_descriptors_it_waits_instead_of_spinning) {
  start();
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const int next = ::dup(0);
  ::close(next);
  const rlimit none{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto channel = std::make_shared<Channel>(
      Socket(loop.executor(), boost::asio::generic::stream_protocol(AF_INET, 0), client));
  channel->socket().connect(
      boost::asio::ip::tcp::endpoint(boost::asio::ip::address_v4::loopback(), port));
  loop.context.restart();
  const std::size_t handlers = loop.context.run_for(30ms);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_LT(handlers, 20U);
  loop.send(channel, get("/late", "Connection: close\r\n"));
  EXPECT_THAT(loop.read_all(channel), EndsWith("/late|"));
}

TEST_F(ServerTest, a_port_in_use_is_a_conflict) {
  start();
  const auto again = server->listen_tcp("127.0.0.1", port);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::Conflict);
  EXPECT_FALSE(server->listen_tcp("no.such.host.invalid", 0));
}

struct UnixServerTest : ServerTest {
  int connect_unix() {
    const int client = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return client;
  }
  // All of it into the kernel, while the server does not run.
  static void send_at_once(int client, const std::string& bytes) {
    EXPECT_EQ(::send(client, bytes.data(), bytes.size(), MSG_DONTWAIT),
              static_cast<ssize_t>(bytes.size()));
  }

  std::filesystem::path folder;
  std::string path;

  void SetUp() override {
    ServerTest::SetUp();
    std::string pattern = testing::TempDir() + "/flotilla-http-XXXXXX";
    folder = ::mkdtemp(pattern.data());
    path = folder / "s.sock";
    start();
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  // A socket file that nobody listens on.
  void leave_stale() {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::close(socket);
  }
};

TEST_F(UnixServerTest, who_sends_without_a_pause_keeps_nobody_waiting) {
  server.reset();
  options.header_max_bytes = 1 << 20;
  server = std::make_unique<Server>(
      loop.executor(), [this](Exchange& exchange) { return handle(this, exchange); }, options);
  ASSERT_TRUE(server->listen_unix(path));
  const int large = connect_unix();
  const int small = connect_unix();
  loop.run_until([&] { return server->connections() == 2; });
  loop.run_for(1ms);
  // More reads than one gets in a row.
  send_at_once(large, get("/large", "A: " + std::string(160'000, 'x') + "\r\n"));
  send_at_once(small, get("/small"));
  loop.run_until([&] { return seen.requests.size() == 2; });
  EXPECT_EQ(seen.requests, (std::vector<std::string>{"GET /small ", "GET /large "}));
  ::close(large);
  ::close(small);
}

TEST_F(UnixServerTest, listens_privately_and_replaces_a_stale_file) {
  leave_stale();
  ASSERT_TRUE(server->listen_unix(path));
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  boost::asio::local::stream_protocol::socket socket(loop.executor());
  socket.connect(path);
  const auto channel = std::make_shared<Channel>(Socket(std::move(socket)));
  loop.send(channel, get("/u", "Connection: close\r\n"));
  EXPECT_THAT(loop.read_all(channel), EndsWith("/u|"));
  EXPECT_EQ(seen.peer, "unix");

  const auto again = server->listen_unix(path);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::Conflict);
  server.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(UnixServerTest, touches_no_other_file_and_checks_the_length) {
  std::filesystem::create_directory(path);
  EXPECT_EQ(server->listen_unix(path).error().code, Code::Conflict);
  EXPECT_TRUE(std::filesystem::is_directory(path));
  EXPECT_EQ(server->listen_unix("/tmp/" + std::string(96, 'x')).error().code,
            Code::InvalidArgument);
  EXPECT_EQ(server->listen_unix("").error().code, Code::InvalidArgument);
}

TEST_F(ServerTest, shutdown_closes_idle_connections_and_lets_requests_end) {
  start();
  const auto idle = loop.connect(port);
  const auto busy = loop.connect(port);
  loop.send(busy, get("/slow"));
  loop.run_until([&] { return seen.requests.size() == 1 && server->connections() == 2; });
  const Instant begin = SystemClock().now();
  loop.run(server->shutdown(5s));
  EXPECT_LT(SystemClock().now() - begin, 2s);
  EXPECT_EQ(server->connections(), 0);
  EXPECT_EQ(loop.read_all(idle), "");
  EXPECT_THAT(loop.read_all(busy), AllOf(HasSubstr("Connection: close"), EndsWith("/slow|")));
  boost::asio::ip::tcp::socket late(loop.executor());
  boost::system::error_code error;
  late.connect({boost::asio::ip::address_v4::loopback(), port}, error);
  EXPECT_TRUE(error);
}

TEST_F(ServerTest, shutdown_cuts_what_outlives_the_drain) {
  start();
  const auto channel = loop.connect(port);
  loop.send(channel, get("/wait"));
  loop.run_until([&] { return seen.requests.size() == 1; });
  loop.run(server->shutdown(10ms));
  EXPECT_EQ(server->connections(), 0);
  EXPECT_EQ(seen.gone, 1);
  EXPECT_EQ(seen.ended, 1);
  EXPECT_EQ(loop.read_all(channel), "");
}

}  // namespace
}  // namespace flotilla::http
