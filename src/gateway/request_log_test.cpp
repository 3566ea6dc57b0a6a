#include "gateway/request_log.h"

#include <set>

#include <gtest/gtest.h>

namespace flotilla::gateway {
namespace {

using std::chrono::milliseconds;

struct RequestLogTest : testing::Test {
  std::shared_ptr<RequestTrace> begin(const std::string& id) {
    api::RequestRecord record;
    record.id = id;
    return log.begin(std::move(record));
  }
  ManualClock clock;
  RequestLog log{clock};
};

std::string whats(const api::RequestRecord& record) {
  std::string out;
  for (const auto& moment : record.moments) out += (out.empty() ? "" : " ") + moment.what;
  return out;
}

TEST_F(RequestLogTest, TellsOfQueueLossGapsAndEnd) {
  const auto trace = begin("r");
  trace->queued();
  clock.advance(milliseconds(5));
  trace->dispatched("a", cluster::Why::LeastBusy);
  clock.advance(milliseconds(10));
  trace->shown(1);
  clock.advance(milliseconds(300));
  trace->shown(2);
  trace->lost("a: gone");
  trace->dispatched("b", cluster::Why::GoesOn);
  trace->shown(3);
  trace->ended(200, "completed", {.prompt_tokens = 9, .cached_tokens = 4, .completion_tokens = 3});
  const auto& record = trace->record();
  EXPECT_EQ(whats(record), "queued dispatched first_token gap lost dispatched resumed ended");
  EXPECT_EQ(record.ttft_ms, 15);
  EXPECT_EQ(record.gaps, 1);
  EXPECT_EQ(record.retries, 1);
  EXPECT_TRUE(record.resumed);
  EXPECT_EQ(record.cached_tokens, 4U);
  EXPECT_EQ(record.took_ms, 315);
  EXPECT_FALSE(trace->live());
}

TEST_F(RequestLogTest, IsBoundedAndKeepsTheEnd) {
  const auto trace = begin("r");
  for (int i = 0; i < 1000; ++i) {
    trace->shown(static_cast<std::uint64_t>(i));
    clock.advance(milliseconds(300));
  }
  trace->ended(200, "completed", {});
  EXPECT_LE(trace->record().moments.size(), 64U);
  EXPECT_EQ(trace->record().moments.back().what, "ended");
  EXPECT_EQ(trace->record().gaps, 999);
}

TEST_F(RequestLogTest, KeepsTheLastTenThousandAndWhatIsUnderWay) {
  const auto running = begin("running");
  for (int i = 0; i < 10'001; ++i) begin(std::to_string(i))->ended(200, "completed", {});
  EXPECT_EQ(log.find("running"), running);
  EXPECT_EQ(log.recent(20'000).size(), 10'000U);
  EXPECT_EQ(log.find("0"), nullptr);
  EXPECT_EQ(log.find("1"), nullptr);
  EXPECT_NE(log.find("2"), nullptr);
  EXPECT_EQ(log.recent(2).front()->id(), "10000");
}

TEST_F(RequestLogTest, IsBoundedThoughNoneEnds) {
  for (int i = 0; i < 10'001; ++i) begin(std::to_string(i));
  EXPECT_EQ(log.find("0"), nullptr);
  EXPECT_NE(log.find("1"), nullptr);
  EXPECT_EQ(log.recent(2).front()->id(), "10000");
}

TEST_F(RequestLogTest, IdsDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(make_request_id());
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_EQ(seen.begin()->size(), 28U);
}

TEST_F(RequestLogTest, CancelReachesOnlyWhatLives) {
  const auto trace = begin("r");
  EXPECT_FALSE(trace->cancel());
  int cancelled = 0;
  trace->on_cancel([&] { ++cancelled; });
  EXPECT_TRUE(trace->cancel());
  trace->ended(499, "cancelled", {});
  EXPECT_FALSE(trace->cancel());
  EXPECT_EQ(cancelled, 1);
}

}  // namespace
}  // namespace flotilla::gateway
