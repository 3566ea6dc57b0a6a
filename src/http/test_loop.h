#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include "http/channel.h"
#include "http/server.h"

// For the tests of this folder: a loop, a server on it, and clients that speak bytes.
namespace flotilla::http {

class TestLoop {
 public:
  boost::asio::io_context context{1};
  Executor executor() { return context.get_executor(); }

  // Runs the loop until `task` is over.
  template <class T>
  T run(Awaitable<T> task) {
    std::optional<T> out;
    std::exception_ptr failure;
    bool done = false;
    boost::asio::co_spawn(context, std::move(task), [&](std::exception_ptr error, T value) {
      failure = error;
      if (!error) out = std::move(value);
      done = true;
    });
    run_until([&] { return done; });
    if (failure) std::rethrow_exception(failure);
    return std::move(*out);
  }
  void run(Awaitable<void> task) {
    bool done = false;
    boost::asio::co_spawn(context, std::move(task), [&](std::exception_ptr) { done = true; });
    run_until([&] { return done; });
  }

  // Runs the loop until `condition` holds; a test that waits 10 s has failed.
  void run_until(const std::function<bool()>& condition) {
    context.restart();
    const Instant end = SystemClock().now() + std::chrono::seconds(10);
    while (!condition()) {
      context.run_one_for(std::chrono::milliseconds(100));
      context.restart();
      if (SystemClock().now() > end) {
        ADD_FAILURE() << "the condition did not come";
        std::abort();  // coroutines refer to the test's frame
      }
    }
  }

  void run_for(Duration time) {
    context.restart();
    context.run_for(time);
  }

  std::shared_ptr<Channel> connect(std::uint16_t port) {
    boost::asio::ip::tcp::socket socket(executor());
    socket.connect({boost::asio::ip::address_v4::loopback(), port});
    return std::make_shared<Channel>(Socket(std::move(socket)));
  }

  // What the peer sends until it closes.
  std::string read_all(std::shared_ptr<Channel> channel) { return run(read_until(channel, "")); }
  // What the peer sends until `end` has come (or it closes).
  std::string read_to(std::shared_ptr<Channel> channel, std::string end) {
    return run(read_until(std::move(channel), std::move(end)));
  }
  void send(std::shared_ptr<Channel> channel, std::string bytes) {
    run(send_all(std::move(channel), std::move(bytes)));
  }

 private:
  static Awaitable<std::string> read_until(std::shared_ptr<Channel> channel, std::string end) {
    std::string out;
    while (end.empty() || out.find(end) == std::string::npos) {
      std::array<char, 4096> bytes;
      const Channel::Read read = co_await channel->read_some(bytes, std::chrono::seconds(10));
      if (read.io != Io::Ok) break;
      out.append(bytes.data(), read.got);
    }
    channel->rest();
    co_return out;
  }
  static Awaitable<void> send_all(std::shared_ptr<Channel> channel, std::string bytes) {
    const Channel::Parts parts{bytes, "", ""};
    co_await channel->write(parts, std::chrono::seconds(10));
    channel->rest();
  }
};

}  // namespace flotilla::http
