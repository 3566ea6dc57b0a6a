#include "client/burst_report.h"

#include <gtest/gtest.h>

namespace flotilla::client {
namespace {

using std::chrono::milliseconds;

Instant at(int ms) { return Instant{} + milliseconds(ms); }

// An answer whose pieces come every `gap` ms from `first` on.
StreamSeen stream(int first, int gap, int pieces) {
  StreamSeen seen;
  seen.sent = at(0);
  for (int i = 0; i < pieces; ++i) seen.pieces.push_back(at(first + i * gap));
  seen.completion_tokens = pieces;
  seen.whole = true;
  return seen;
}

BurstSeen burst(std::vector<StreamSeen> streams, int end) {
  return {.begin = at(0), .end = at(end), .max_tokens = 11, .streams = std::move(streams)};
}

TEST(BurstReport, one_at_a_time_makes_as_many_waves_as_requests) {
  const auto report =
      report_of(burst({stream(10, 10, 11), stream(110, 10, 11), stream(210, 10, 11)}, 310));
  EXPECT_EQ(report.streaming_max, 1);
  EXPECT_EQ(report.waves, 3);
  EXPECT_EQ(report.completed, 3);
  EXPECT_TRUE(report.all_well());
}

TEST(BurstReport, answers_that_overlap_are_one_wave) {
  const auto report =
      report_of(burst({stream(10, 10, 11), stream(20, 10, 11), stream(30, 10, 11)}, 130));
  EXPECT_EQ(report.streaming_max, 3);
  EXPECT_EQ(report.waves, 1);
  EXPECT_EQ(report.tokens, 33);
  EXPECT_NEAR(report.tokens_per_s, 33 / 0.130, 0.01);
  EXPECT_NEAR(report.stream_tokens_per_s, 100, 0.01);
  EXPECT_DOUBLE_EQ(report.ttft_ms.p50, 20);
  EXPECT_DOUBLE_EQ(report.ttft_ms.max, 30);
  EXPECT_DOUBLE_EQ(report.gap_ms.p99, 10);
}

TEST(BurstReport, truncated_and_failed_answers_are_told_apart) {
  StreamSeen cut = stream(10, 10, 5);
  StreamSeen no_done = stream(10, 10, 11);
  no_done.whole = false;
  StreamSeen lost = stream(10, 10, 3);
  lost.whole = false;
  lost.error = "connection lost";
  const auto report = report_of(burst({stream(10, 10, 11), cut, no_done, lost, StreamSeen{}}, 120));
  EXPECT_EQ(report.completed, 1);
  EXPECT_EQ(report.truncated, 3);
  EXPECT_EQ(report.failed, 1);
  EXPECT_EQ(report.first_error, "connection lost");
  EXPECT_FALSE(report.all_well());
}

TEST(BurstReport, nothing_seen_is_no_division_by_zero) {
  const auto report = report_of(burst({StreamSeen{}}, 0));
  EXPECT_EQ(report.waves, 0);
  EXPECT_EQ(report.tokens_per_s, 0);
}

TEST(Spread, nearest_rank) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Spread spread = spread_of(values);
  EXPECT_EQ(spread.p50, 50);
  EXPECT_EQ(spread.p99, 99);
  EXPECT_EQ(spread.max, 100);
  EXPECT_EQ(spread_of({7}).p50, 7);
}

TEST(BurstReport, rounds_are_joined_by_the_median_and_failures_by_the_sum) {
  BurstReport slow = report_of(burst({stream(10, 30, 11)}, 400));
  BurstReport fast = report_of(burst({stream(10, 10, 11)}, 120));
  BurstReport middle = report_of(burst({stream(10, 20, 11)}, 220));
  slow.failed = 1;
  slow.completed = 0;
  const BurstReport joined = median_of({slow, fast, middle});
  EXPECT_DOUBLE_EQ(joined.wall_s, 0.22);
  EXPECT_EQ(joined.requests, 3);
  EXPECT_EQ(joined.completed, 2);
  EXPECT_EQ(joined.failed, 1);
}

TEST(BurstTable, names_what_went_wrong_and_keeps_its_columns) {
  NamedReport named{.url = "http://127.0.0.1:8000",
                    .model = "m",
                    .report = report_of(burst({stream(10, 10, 11), stream(10, 10, 11)}, 120))};
  const std::string table = burst_table(named);
  EXPECT_NE(table.find("2 of 2"), std::string::npos);
  EXPECT_NE(table.find("waves"), std::string::npos);
  named.report.failed = 1;
  named.report.first_error = "503 nobody is there";
  EXPECT_NE(burst_table(named).find("503 nobody is there"), std::string::npos);
  EXPECT_NE(comparison_table(named, named, 3).find("1.00"), std::string::npos);
  EXPECT_EQ(burst_json(named).find('\n'), std::string::npos);
}

}  // namespace
}  // namespace flotilla::client
