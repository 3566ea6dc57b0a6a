#include "nodes/child_run.h"

#include <chrono>
#include <optional>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace flotilla::nodes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ChildRunTest : public testing::Test {
 protected:
  // Without an answer within 20 s: nullopt.
  std::optional<Result<ChildOutput>> run(ChildRun what) {
    std::optional<Result<ChildOutput>> answer;
    boost::asio::co_spawn(context_, run_child(context_.get_executor(), std::move(what)),
                          [&](std::exception_ptr, Result<ChildOutput> output) {
                            answer = std::move(output);
                            context_.stop();
                          });
    context_.run_for(seconds(20));
    return answer;
  }
  // Ends when its stdin does, or at a signal.
  static ChildRun shell(const char* script) {
    ChildRun out;
    out.command.program = "/bin/sh";
    out.command.arguments = {"-c", script};
    out.limit = seconds(3600);
    return out;
  }

  boost::asio::io_context context_;
};

TEST_F(ChildRunTest, WhatItReadsAndSaysIsTheCallers) {
  ChildRun echo = shell("cat; echo last >&2; exit 3");
  echo.in_text = "text";
  const auto answer = run(std::move(echo));
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ((*answer)->out, "text");
  EXPECT_EQ((*answer)->failure(), "exit code 3: last");
}

TEST_F(ChildRunTest, OneThatTakesTooLongIsKilled) {
  ChildRun endless = shell("exec tail -f /dev/null");
  endless.limit = milliseconds(20);
  const auto answer = run(std::move(endless));
  ASSERT_TRUE(answer && !*answer);
  EXPECT_EQ(answer->error().code, Code::DeadlineExceeded);
}

TEST_F(ChildRunTest, OneThatIsStoppedEndsAtOnce) {
  Stop stop(context_.get_executor());
  ChildRun endless = shell("exec tail -f /dev/null");
  endless.stop = &stop;
  // Once more round the loop: by then it runs.
  boost::asio::post(context_, [&] { boost::asio::post(context_, [&stop] { stop.ask(); }); });
  const auto answer = run(std::move(endless));
  ASSERT_TRUE(answer && !*answer);
  EXPECT_EQ(answer->error().code, Code::Cancelled);
}

TEST_F(ChildRunTest, OneThatWasStoppedBeforeDoesNotRunOn) {
  Stop stop(context_.get_executor());
  stop.ask();
  ChildRun endless = shell("exec tail -f /dev/null");
  endless.stop = &stop;
  const auto answer = run(std::move(endless));
  ASSERT_TRUE(answer && !*answer);
  EXPECT_EQ(answer->error().code, Code::Cancelled);
}

}  // namespace
}  // namespace flotilla::nodes
