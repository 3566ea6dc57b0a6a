#include "http/client.h"

#include <cstdio>
#include <unistd.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/test_loop.h"

namespace flotilla::http {
namespace {

using namespace std::chrono_literals;

using boost::asio::ip::tcp;

Headers event_stream() {
  Headers headers;
  headers.add("Content-Type", "text/event-stream");
  return headers;
}

Request make_request(std::string method, std::string target, std::string body = "") {
  Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.body = std::move(body);
  return request;
}

// Against our own server.
struct ClientTest : testing::Test {
  TestLoop loop;
  int gone = 0;
  Server server{loop.executor(), [this](Exchange& exchange) { return handle(this, exchange); }, {}};
  std::uint16_t port = *server.listen_tcp("127.0.0.1", 0);
  Client client{loop.executor(), at(port)};

  static Endpoint at(std::uint16_t port) {
    Endpoint endpoint;
    endpoint.host = "127.0.0.1";
    endpoint.port = port;
    endpoint.base_path = "/v1";
    return endpoint;
  }

  static Awaitable<void> handle(ClientTest* test, Exchange& exchange) {
    const Request request = exchange.take_request();
    exchange.on_client_gone([test] { ++test->gone; });
    if (request.path() == "/v1/stream") {
      co_await exchange.start(200, event_stream());
      for (int i = 0; i < 3; ++i) {
        const std::string event = "data: " + std::to_string(i) + "\n\n";
        co_await exchange.write(event);
      }
      co_await exchange.finish();
    } else if (request.path() == "/v1/endless") {
      co_await exchange.start(200, event_stream());
      co_await exchange.write("data: 0\n\n");
      boost::asio::steady_timer timer(test->loop.context);
      while (!exchange.client_gone()) {
        timer.expires_after(1ms);
        co_await timer.async_wait(kAwait);
      }
    } else {
      Response response;
      response.headers.add("X-Method", request.method);
      response.headers.add("X-Host", std::string(*request.headers.find("Host")));
      response.body = request.target + "|" + request.body;
      co_await exchange.respond(std::move(response));
    }
  }
};

TEST_F(ClientTest, fetches_an_answer_and_reuses_the_connection) {
  for (int i = 0; i < 3; ++i) {
    const auto response = loop.run(client.fetch(make_request("POST", "/a?b=c", "hello"), 5s));
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->headers.find("x-method"), "POST");
    EXPECT_EQ(response->headers.find("x-host"), "127.0.0.1:" + std::to_string(port));
    EXPECT_EQ(response->body, "/v1/a?b=c|hello");
    EXPECT_EQ(server.connections(), 1);
  }
}

TEST_F(ClientTest, carries_bodies_of_any_size) {
  for (const std::size_t size : {0, 1, 65'535, 65'536, 3'000'000}) {
    const std::string body(size, 'b');
    const auto response = loop.run(client.fetch(make_request("PUT", "/", body), 5s));
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "/v1/|" + body);
  }
  const auto large = loop.run(client.fetch(make_request("PUT", "/", "12345"), 5s, 8));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::TooLarge);
}

TEST_F(ClientTest, reads_a_stream_to_its_end_and_reuses_the_connection) {
  for (int i = 0; i < 2; ++i) {
    const auto response = loop.run(client.fetch(make_request("GET", "/stream"), 5s));
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "data: 0\n\ndata: 1\n\ndata: 2\n\n");
    EXPECT_EQ(server.connections(), 1);
  }
}

TEST_F(ClientTest, head_has_no_body) {
  for (int i = 0; i < 2; ++i) {
    const auto response = loop.run(client.fetch(make_request("HEAD", "/x"), 5s));
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->headers.find("Content-Length"), "6");
    EXPECT_EQ(response->body, "");
  }
}

TEST_F(ClientTest, dropping_or_closing_a_stream_closes_the_connection) {
  for (const bool drop : {true, false}) {
    gone = 0;
    auto stream = loop.run(client.open(make_request("GET", "/endless"), 5s));
    ASSERT_TRUE(stream) << stream.error().message;
    EXPECT_EQ(*loop.run((*stream)->read(5s)), "data: 0\n\n");
    if (drop) {
      stream->reset();
    } else {
      (*stream)->close();
      EXPECT_EQ(loop.run((*stream)->read(5s)).error().code, Code::Unavailable);
    }
    loop.run_until([&] { return gone == 1 && server.connections() == 0; });
  }
}

TEST_F(ClientTest, a_read_has_a_limit) {
  auto stream = loop.run(client.open(make_request("GET", "/endless"), 5s));
  ASSERT_TRUE(stream);
  EXPECT_EQ(*loop.run((*stream)->read(5s)), "data: 0\n\n");
  const auto late = loop.run((*stream)->read(5ms));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::DeadlineExceeded);
  loop.run_until([&] { return gone == 1; });
}

TEST_F(ClientTest, closing_or_dropping_ends_a_read_that_waits) {
  for (const bool drop : {true, false}) {
    auto stream = loop.run(client.open(make_request("GET", "/endless"), 5s));
    ASSERT_TRUE(stream);
    EXPECT_EQ(*loop.run((*stream)->read(5s)), "data: 0\n\n");
    std::optional<Result<std::string>> late;
    boost::asio::co_spawn(
        loop.context, (*stream)->read(60s),
        [&](std::exception_ptr, Result<std::string> got) { late = std::move(got); });
    loop.run_for(1ms);
    if (drop) {
      stream->reset();
    } else {
      (*stream)->close();
    }
    loop.run_until([&] { return late.has_value(); });
    EXPECT_FALSE(*late);
  }
}

Awaitable<bool> read_or_give_up(ClientStream& stream, Executor executor) {
  using namespace boost::asio::experimental::awaitable_operators;
  boost::asio::steady_timer timer(executor, std::chrono::milliseconds(5));
  const auto first = co_await (stream.read(60s) || timer.async_wait(kAwait));
  co_return first.index() == 1;
}

TEST_F(ClientTest, a_cancelled_read_leaves_no_connection_behind) {
  auto stream = loop.run(client.open(make_request("GET", "/endless"), 5s));
  ASSERT_TRUE(stream);
  EXPECT_EQ(*loop.run((*stream)->read(5s)), "data: 0\n\n");
  EXPECT_TRUE(loop.run(read_or_give_up(**stream, loop.executor())));
  loop.run_until([&] { return gone == 1 && server.connections() == 0; });
}

TEST_F(ClientTest, a_loop_with_resting_connections_can_end) {
  ASSERT_TRUE(loop.run(client.fetch(make_request("GET", "/x"), 3600s)));
  loop.run(server.shutdown(0s));
  loop.context.restart();
  loop.context.run();
}

// Against bytes: each connection gets the next script, answering what it says after each request
// head.
struct ScriptTest : testing::Test {
  TestLoop loop;
  tcp::acceptor acceptor{loop.context, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)};
  std::vector<std::vector<std::string>> scripts;  // per connection: its parts
  std::vector<std::string> requests;
  std::size_t accepted = 0;
  Endpoint endpoint = ClientTest::at(acceptor.local_endpoint().port());
  Client client{loop.executor(), endpoint};

  void serve(std::vector<std::vector<std::string>> connections) {
    scripts = std::move(connections);
    accepted = 0;
    boost::asio::co_spawn(loop.context, accept(this), [](std::exception_ptr) {});
  }

  static Awaitable<void> accept(ScriptTest* test) {
    while (test->accepted < test->scripts.size()) {
      auto [error, socket] = co_await test->acceptor.async_accept(kAwait);
      if (error) co_return;
      socket.set_option(tcp::no_delay(true));
      const auto channel = std::make_shared<Channel>(Socket(std::move(socket)));
      const std::size_t index = test->accepted++;
      co_await play(test, channel, index);
    }
  }

  // "<" waits for a request, "!" lets the loop turn, "." holds the connection until the client
  // leaves.
  static Awaitable<void> play(ScriptTest* test, std::shared_ptr<Channel> channel,
                              std::size_t index) {
    for (const std::string& part : test->scripts[index]) {
      if (part == "<" || part == ".") {
        std::string request;
        while (request.find("\r\n\r\n") == std::string::npos) {
          std::array<char, 4096> bytes;
          const Channel::Read read = co_await channel->read_some(bytes, 10s);
          if (read.io != Io::Ok) co_return;
          request.append(bytes.data(), read.got);
        }
        test->requests.push_back(request.substr(0, request.find("\r\n")));
      } else if (part == "!") {
        boost::asio::steady_timer timer(test->loop.context, 1ms);
        co_await timer.async_wait(kAwait);
      } else {
        const Channel::Parts parts{part, "", ""};
        co_await channel->write(parts, 10s);
      }
    }
  }

  Result<Response> fetch(std::string method = "GET", Duration limit = 5s) {
    return loop.run(client.fetch(make_request(std::move(method), "/x"), limit));
  }
};

TEST_F(ScriptTest, decodes_an_answer_at_every_border) {
  const std::string answer =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n";
  std::vector<std::string> script;
  for (std::size_t cut = 1; cut < answer.size(); ++cut) {
    script.insert(script.end(), {"<", answer.substr(0, cut), "!", answer.substr(cut)});
  }
  serve({script});
  for (std::size_t cut = 1; cut < answer.size(); ++cut) {
    const auto response = fetch();
    ASSERT_TRUE(response) << cut << response.error().message;
    ASSERT_EQ(response->body, "hello world") << cut;
  }
  EXPECT_EQ(accepted, 1U);
}

TEST_F(ScriptTest, tells_whole_bodies_from_cut_ones) {
  const std::pair<const char*, bool> cases[] = {
      {"HTTP/1.1 200 OK\r\n\r\nhello", true},
      {"HTTP/1.0 200 OK\r\n\r\nhello", true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", false},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", false},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", false},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX", false},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false},
      {"HTTP/1.1 200 OK\r\nContent-Len", false},
      {"", false},
      {"nonsense\r\n\r\n", false},
  };
  for (const auto& [answer, whole] : cases) {
    serve({{"<", answer}});
    const auto response = fetch();
    EXPECT_EQ(response.has_value(), whole) << answer;
    if (response) {
      EXPECT_EQ(response->body, "hello") << answer;
    } else {
      EXPECT_EQ(response.error().code, Code::Unavailable) << answer;
      EXPECT_EQ(response.error().reason, "") << answer;
    }
    loop.run_for(1ms);
  }
}

constexpr const char* kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST_F(ScriptTest, a_stale_connection_is_retried_once_if_the_request_may_run_twice) {
  serve({{"<", kOk, "<"}, {"<", kOk}});
  ASSERT_TRUE(fetch());
  const auto second = fetch();  // its first connection closes when it has the request
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(requests.size(), 3U);
  loop.run_for(1ms);

  serve({{"<", kOk, "<"}});
  ASSERT_TRUE(fetch("POST"));
  const auto lost = fetch("POST");
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::Unavailable);
  EXPECT_EQ(lost.error().reason, "");
}

TEST_F(ScriptTest, a_connection_that_ended_while_it_rested_is_not_used) {
  serve({{"<", kOk}, {"<", kOk}});
  ASSERT_TRUE(fetch("POST"));
  loop.run_for(1ms);
  const auto second = fetch("POST");
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(accepted, 2U);
}

TEST_F(ScriptTest, an_answer_with_more_behind_it_is_not_reused) {
  serve({{"<", std::string(kOk) + "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad", "!"},
         {"<", kOk}});
  ASSERT_TRUE(fetch());
  const auto second = fetch();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->body, "ok");
  EXPECT_EQ(accepted, 2U);
  EXPECT_EQ(requests.size(), 2U);  // none went into the first connection
}

TEST_F(ScriptTest, an_early_refusal_is_seen_while_the_body_is_sent) {
  serve({{"<", "HTTP/1.1 413 X\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno", "!", "!"}});
  const std::string body(40'000'000, 'x');
  const auto response = loop.run(client.fetch(make_request("POST", "/x", body), 5s));
  // The reset may take the answer with it; what must not happen is a wait or a wrong status.
  if (response) {
    EXPECT_EQ(response->status, 413);
  } else {
    EXPECT_EQ(response.error().code, Code::Unavailable);
  }
}

TEST_F(ScriptTest, a_silent_server_meets_the_limit) {
  serve({{".", "."}});
  const auto response = fetch("GET", 10ms);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::DeadlineExceeded);
}

TEST_F(ScriptTest, an_open_is_cut_from_outside) {
  serve({{".", "."}});
  Cut cut;
  std::optional<Result<std::unique_ptr<ClientStream>>> opened;
  boost::asio::co_spawn(loop.context, client.open(make_request("GET", "/x"), 60s, &cut),
                        [&](std::exception_ptr, Result<std::unique_ptr<ClientStream>> got) {
                          opened = std::move(got);
                        });
  loop.run_until([&] { return requests.size() == 1; });
  EXPECT_FALSE(opened);
  cut.now();
  loop.run_until([&] { return opened.has_value(); });
  EXPECT_FALSE(opened->has_value());
  const auto later = loop.run(client.open(make_request("GET", "/x"), 60s, &cut));
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, Code::Cancelled);
}

TEST_F(ScriptTest, reads_much_in_pieces_of_at_most_64_kib) {
  std::string body(300'000, 'x');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>('a' + i % 23);
  serve({{"<", "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + body}});
  auto stream = loop.run(client.open(make_request("GET", "/x"), 5s));
  ASSERT_TRUE(stream);
  std::string got;
  while (true) {
    const auto bytes = loop.run((*stream)->read(5s));
    ASSERT_TRUE(bytes) << bytes.error().message;
    if (bytes->empty()) break;
    ASSERT_LE(bytes->size(), 64U << 10);
    got += *bytes;
  }
  EXPECT_EQ(got, body);
}

TEST_F(ScriptTest, chunks_that_came_together_are_read_together_and_in_order) {
  std::string body, chunks;
  for (int i = 0; i < 3000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    char size[8];
    std::snprintf(size, sizeof size, "%zx\r\n", line.size());
    chunks += size + line + "\r\n";
    body += line;
  }
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string behind = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad";
  serve({{"<", head + chunks + "0\r\n\r\n", "<", head + chunks + "0\r\n\r\n" + behind, "!"},
         {"<", head + chunks + "XX"},
         {"<", head + chunks}});
  for (int i = 0; i < 2; ++i) {
    const auto response = fetch();
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, body);
    EXPECT_EQ(accepted, 1U);
  }
  for (const std::size_t connections : {2U, 3U}) {
    EXPECT_FALSE(fetch("POST"));
    EXPECT_EQ(accepted, connections);
  }
}

TEST_F(ScriptTest, says_when_nothing_was_sent) {
  acceptor.close();
  for (const auto& path :
       {std::string(), std::string("/nonexistent/x.sock"), std::string(300, 'x')}) {
    Endpoint target = endpoint;
    target.unix_path = path;
    Client other(loop.executor(), target);
    const auto response = loop.run(other.fetch(make_request("POST", "/x"), 5s));
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, Code::Unavailable);
    EXPECT_EQ(response.error().reason, "connect");
  }
}

TEST_F(ScriptTest, a_target_cannot_add_lines) {
  serve({{"<", kOk}});
  Request request = make_request("GET", "/a b\r\nX: y\r\n\r\n");
  request.headers.add("A", "b\r\nC: d");
  ASSERT_TRUE(loop.run(client.fetch(request, 5s)));
  EXPECT_EQ(requests.front(), "GET /v1/abX:y HTTP/1.1");
}

TEST_F(ScriptTest, nor_can_the_place_that_all_targets_begin_with) {
  serve({{"<", kOk}});
  endpoint.base_path = "/v1 HTTP/1.1\r\nX: y\r\n\r\n";
  Client other(loop.executor(), endpoint);
  ASSERT_TRUE(loop.run(other.fetch(make_request("GET", "/a"), 5s)));
  EXPECT_EQ(requests.front(), "GET /v1HTTP/1.1X:y/a HTTP/1.1");
}

TEST(ParseUrl, takes_apart_or_says_what_is_wrong) {
  const auto good = [](std::string_view url, std::string_view host, int port, bool tls,
                       std::string_view base) {
    const auto endpoint = parse_url(url);
    ASSERT_TRUE(endpoint) << url;
    EXPECT_EQ(endpoint->host, host) << url;
    EXPECT_EQ(endpoint->port, port) << url;
    EXPECT_EQ(endpoint->tls, tls) << url;
    EXPECT_EQ(endpoint->base_path, base) << url;
  };
  good("http://a", "a", 80, false, "");
  good("http://a/", "a", 80, false, "");
  good("https://a.b/v1/", "a.b", 443, true, "/v1");
  good("http://127.0.0.1:8080/x/y", "127.0.0.1", 8080, false, "/x/y");
  good("http://[::1]:8080", "::1", 8080, false, "");
  good("https://[::1]", "::1", 443, true, "");
  for (const char* url :
       {"", "a", "ftp://a", "http://", "http://:80", "http://a:0", "http://a:x", "http://a:65536",
        "http://a:80x", "http://u:p@a", "http://a?b", "http://a/#b", "http://[::1", "http://[::1]x",
        "http://a b", "http://a\r\n"}) {
    const auto endpoint = parse_url(url);
    ASSERT_FALSE(endpoint) << url;
    EXPECT_EQ(endpoint.error().code, Code::InvalidArgument);
  }
}

}  // namespace
}  // namespace flotilla::http
