#include "nodes/ssh_forward.h"

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "base/clock.h"

// ssh is a shell that says what ssh would; the socket that ssh would make is the test's.
namespace flotilla::nodes {
namespace {

using boost::asio::local::stream_protocol;
using std::chrono::milliseconds;

constexpr const char* kRefusal = "channel 2: open failed: connect failed: open failed";
constexpr const char* kForbidden = "channel 2: open failed: administratively prohibited: x";

class SshForwardTest : public testing::Test {
 protected:
  ~SshForwardTest() override {
    forward_.reset();
    if (acceptor_) acceptor_->close();
    context_.restart();
    context_.run_for(std::chrono::seconds(5));  // its shell ends
    std::error_code ignored;
    std::filesystem::remove(socket_, ignored);
  }

  // `line`: what the shell says on stderr before it says that the socket accepts.
  void open(const std::string& line) {
    SshForward::Options options{.executor = context_.get_executor()};
    options.name = "test";
    options.command.program = "/bin/sh";
    options.command.arguments = {"-c", "echo \"$1\" >&2; echo open; exec cat >/dev/null", "sh",
                                 line};
    options.socket = socket_;
    options.remedy = "do this";
    options.on_forbidden = [this](std::string why) { forbidden_ = std::move(why); };
    options.try_again = milliseconds(2);
    forward_ = std::make_unique<SshForward>(std::move(options));
    context_.poll();  // it has removed what was left at the socket's place
    acceptor_.emplace(context_, stream_protocol::endpoint(socket_));
    boost::asio::co_spawn(context_, accept(), boost::asio::detached);
  }

  Awaitable<void> accept() {
    for (;;) {
      auto [error, socket] = co_await acceptor_->async_accept(kAwait);
      if (error) co_return;
      ++connections_;
      if (connections_ <= closings_) continue;  // closed at once
      std::array<char, 256> question{};
      co_await socket.async_read_some(boost::asio::buffer(question), kAwait);
      const std::string answer = "HTTP/1.1 200 OK\r\n\r\n";
      co_await boost::asio::async_write(socket, boost::asio::buffer(answer), kAwait);
    }
  }

  Awaitable<void> wait() { result_ = co_await forward_->wait_open(std::chrono::seconds(20)); }
  template <class Condition>
  bool run_until(Condition condition) {
    const Instant deadline = clock_.now() + std::chrono::seconds(20);
    while (!condition() && clock_.now() < deadline) {
      if (context_.stopped()) context_.restart();
      context_.run_one_for(milliseconds(50));
    }
    return condition();
  }
  void begin_wait() {
    result_.reset();
    boost::asio::co_spawn(context_, wait(), boost::asio::detached);
  }
  // What the wait says.
  Result<void> waited() {
    run_until([this] { return result_.has_value(); });
    return result_ ? *result_ : fail(Code::Internal, "the wait never ended");
  }

  SystemClock clock_;
  boost::asio::io_context context_;
  const std::string socket_ = std::filesystem::temp_directory_path() /
                              ("forward-" + std::to_string(platform::own_pid()) + ".sock");
  std::optional<stream_protocol::acceptor> acceptor_;
  std::unique_ptr<SshForward> forward_;
  std::optional<Result<void>> result_;
  std::string forbidden_;
  int connections_ = 0;
  int closings_ = 0;  // so many connections are closed before one is answered
};

TEST_F(SshForwardTest, ItIsOpenOnceAnAnswerCameThrough) {
  closings_ = 2;
  open("welcome");
  EXPECT_FALSE(forward_->is_open());
  begin_wait();
  const auto opened = waited();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE(forward_->is_open());
  EXPECT_EQ(connections_, 3);
}

TEST_F(SshForwardTest, OneWhoseEveryConnectionIsClosedSaysWhyAndWhatWouldDo) {
  closings_ = 1000;
  open(kRefusal);
  begin_wait();
  const auto refused = waited();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Unavailable);
  EXPECT_NE(refused.error().message.find(kRefusal), std::string::npos) << refused.error().message;
  EXPECT_TRUE(refused.error().message.ends_with("; do this")) << refused.error().message;
  EXPECT_FALSE(forward_->is_open());
  EXPECT_EQ(forbidden_, "") << "ssh says the same where nobody listens yet";
}

TEST_F(SshForwardTest, WhatSshdForbidsIsToldUnasked) {
  open(kForbidden);
  EXPECT_TRUE(run_until([this] { return !forbidden_.empty(); }));
  EXPECT_NE(forbidden_.find(kForbidden), std::string::npos) << forbidden_;
  EXPECT_TRUE(forbidden_.ends_with("; do this")) << forbidden_;
}

TEST_F(SshForwardTest, OneThatIsClosedMeanwhileWasNotRefused) {
  closings_ = 1000;
  open("welcome");
  begin_wait();
  ASSERT_TRUE(run_until([this] { return connections_ > 0; }));
  forward_.reset();
  const auto closed = waited();
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::NotFound);
}

}  // namespace
}  // namespace flotilla::nodes
