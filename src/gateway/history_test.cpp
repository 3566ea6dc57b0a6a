#include "gateway/history.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "gateway/metrics.h"

namespace flotilla::gateway {
namespace {

using std::chrono::seconds;

TEST(LatencyCounts, PercentilesAreWithinSevenPercent) {
  LatencyCounts counts;
  EXPECT_FALSE(counts.percentile(0.5));
  for (int ms = 1; ms <= 1000; ++ms) counts.add(ms);
  EXPECT_NEAR(*counts.percentile(0.5), 500, 35);
  EXPECT_NEAR(*counts.percentile(0.99), 990, 70);
  counts.clear();
  EXPECT_FALSE(counts.percentile(0.99));
  counts.add(0);
  counts.add(1e12);  // beyond the last bucket
  EXPECT_LT(*counts.percentile(0.5), 0.1);
  EXPECT_GT(*counts.percentile(1), 100'000);
}

TEST(Pace, TellsTheFirstTokenThenTheGapsOfTheFirstChoice) {
  History history;
  ManualClock clock;
  Metrics metrics;
  Pace pace(history, metrics, clock, "a");
  pace.in_replica("r");
  clock.advance(std::chrono::milliseconds(200));
  pace.tokens(0, 1, clock.now());
  clock.advance(std::chrono::milliseconds(20));
  pace.tokens(1, 5, clock.now());
  pace.tokens(0, 2, clock.now());
  history.close_step({.pool = "a"}, {.queue = 3, .in_flight = 1, .replicas_live = 2}, 100);
  const std::string json = history.newest_json();
  EXPECT_NE(json.find(R"("pool":"a","node":null,"unix_s":100,"tokens_per_s":1.6,"queue":3)"),
            std::string::npos)
      << json;
  history.close_step({.pool = "a"}, {}, 105);
  EXPECT_NE(history.newest_json().find(R"("ttft_p50_ms":null)"), std::string::npos);
  pace.prompt(40, 10);
  history.close_step({.pool = "a", .node = "r"}, {}, 105);
  const std::string replicas = history.series_json({.replicas = true, .range = seconds(900)}, 105);
  EXPECT_NE(replicas.find(R"("pool":"a","node":"r","unix_s":[105],"tokens_per_s":[1.6])"),
            std::string::npos)
      << replicas;
  EXPECT_NE(replicas.find(R"("cached_share":[0.25])"), std::string::npos) << replicas;
  Pace().tokens(0, 1, clock.now());  // nowhere
}

TEST(History, KeepsADayAndNoMore) {
  History history;
  for (std::size_t i = 0; i < History::kSamplesMax + 100; ++i) {
    history.close_step({.pool = "a"}, {}, static_cast<std::int64_t>(i) * History::kStep.count());
  }
  const auto end = static_cast<std::int64_t>(History::kSamplesMax + 99) * History::kStep.count();
  const std::string day = history.series_json({.range = seconds(86400)}, end);
  EXPECT_NE(day.find(R"("step_s":240)"), std::string::npos) << day.substr(0, 60);
  EXPECT_LE(std::ranges::count(day, ','), 10 * 360 + 20);
  const std::string minutes = history.series_json({.pool = "a", .range = seconds(900)}, end);
  EXPECT_NE(minutes.find(R"("step_s":5)"), std::string::npos);
  const std::string others = history.series_json({.pool = "b", .range = seconds(900)}, end);
  EXPECT_EQ(others.find("unix_s"), std::string::npos);
}

TEST(History, ManyPoolsPushOutTheOneThatWasSilentLongest) {
  History history;
  for (std::size_t i = 0; i <= History::kSeriesMax; ++i) {
    history.close_step({.pool = "pool-" + std::to_string(i)}, {}, static_cast<std::int64_t>(i) + 1);
  }
  EXPECT_FALSE(history.knows("pool-0"));
  EXPECT_TRUE(history.knows("pool-1"));
}

}  // namespace
}  // namespace flotilla::gateway
