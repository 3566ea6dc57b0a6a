#include "api/trace_context.h"

#include <string>

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

constexpr const char* kGood = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TraceContext read(std::vector<std::string_view> traceparents,
                  const std::vector<std::string_view>& tracestates = {}) {
  return read_trace_context(traceparents, tracestates);
}

TEST(TraceContext, IsPassedOnAsItCame) {
  const TraceContext context =
      read({kGood}, {"rojo=00f067aa0ba902b7, congo=t61rcWkgMzE", " ,a@b=1 2"});
  EXPECT_EQ(context.traceparent, kGood);
  EXPECT_EQ(context.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(context.tracestate, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE,a@b=1 2");
}

TEST(TraceContext, UnknownFlagsAndLaterVersionsBecomeVersion00) {
  EXPECT_EQ(read({"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff"}).traceparent,
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03");
  EXPECT_EQ(read({"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"}).traceparent,
            kGood);
  EXPECT_EQ(read({"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}).traceparent, kGood);
}

TEST(TraceContext, MalformedOnesAreAsIfNoneHadCome) {
  const std::string good = kGood;
  for (const std::string& text : {
           std::string(),
           std::string("00"),
           good.substr(0, 54),
           good + "0",
           good + "-more",                  // of version 00
           "cc" + good.substr(2) + "more",  // no dash after it
           "ff" + good.substr(2),           // forbidden
           "0X" + good.substr(2),           // no hex
           std::string("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"),
           std::string("00-00000000000000000000000000000000-00f067aa0ba902b7-01"),
           std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"),
           std::string("00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
           std::string("00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01"),
           std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g"),
       }) {
    const TraceContext context = read({text}, {"rojo=1"});
    EXPECT_TRUE(context.empty()) << text;
    EXPECT_EQ(context.tracestate, "") << text;
    EXPECT_EQ(context.trace_id(), "");
  }
  EXPECT_TRUE(read({}).empty());
  EXPECT_TRUE(read({kGood, kGood}).empty()) << "two headers say nothing";
}

TEST(TraceContext, AStateThatIsMalformedOrTooLongIsLeftOut) {
  EXPECT_EQ(read({kGood}, {"rojo"}).tracestate, "");
  EXPECT_EQ(read({kGood}, {"Rojo=1"}).tracestate, "");
  EXPECT_EQ(read({kGood}, {"=1"}).tracestate, "");
  EXPECT_EQ(read({kGood}, {"a="}).tracestate, "");
  EXPECT_EQ(read({kGood}, {"a=b=c"}).tracestate, "");
  const std::string long_state = "a=" + std::string(511, 'x');
  EXPECT_EQ(read({kGood}, {long_state}).tracestate, "");
  EXPECT_EQ(read({kGood}, {long_state}).traceparent, kGood);
  std::string many;
  for (int i = 0; i < 33; ++i) many += "a" + std::to_string(i) + "=1,";
  EXPECT_EQ(read({kGood}, {many}).tracestate, "");
}

}  // namespace
}  // namespace flotilla::api
