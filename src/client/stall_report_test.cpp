#include "client/stall_report.h"

#include <gtest/gtest.h>

namespace flotilla::client {
namespace {

using std::chrono::milliseconds;

Instant at(int ms) { return Instant{} + milliseconds(ms); }

StreamSeen seen(int sent, std::vector<int> pieces) {
  StreamSeen stream;
  stream.sent = at(sent);
  for (const int piece : pieces) stream.pieces.push_back(at(piece));
  stream.prompt_tokens = 7800;
  stream.whole = true;
  return stream;
}

// The prompt comes at 1000 and is answered at 1500.
StallSeen undisturbed() {
  StallSeen stall;
  stall.alone = seen(0, {400, 410});
  stall.beside = seen(1000, {1500, 1510});
  stall.small = {seen(1100, {1200}), seen(1200, {1350})};
  std::vector<int> pieces;
  for (int ms = 600; ms <= 1600; ms += 20) pieces.push_back(ms);
  stall.streams = {seen(590, pieces), seen(590, pieces)};
  return stall;
}

TEST(StallReport, gaps_are_told_apart_by_the_prompts_time) {
  StallSeen stall = undisturbed();
  std::erase_if(stall.streams[1].pieces, [](Instant t) { return t > at(1200) && t < at(1290); });
  const StallReport report = report_of(stall, 0);
  EXPECT_DOUBLE_EQ(report.before_ms.max, 20);
  EXPECT_DOUBLE_EQ(report.during_ms.p50, 20);
  EXPECT_DOUBLE_EQ(report.during_ms.max, 100);
  EXPECT_EQ(report.gaps_before, 40);
  EXPECT_EQ(report.gaps_during, 50 - 4);
  EXPECT_EQ(report.small_ttft_ms, (std::vector<double>{100, 150}));
  EXPECT_DOUBLE_EQ(report.alone_ms, 400);
  EXPECT_DOUBLE_EQ(report.beside_ms, 500);
  EXPECT_EQ(report.prompt_tokens, 7800);
}

TEST(StallReport, a_gap_that_the_prompt_cuts_off_counts) {
  StallSeen stall = undisturbed();
  stall.streams.resize(1);
  stall.streams[0] = seen(590, {600, 620, 990, 1600});  // silent until the prompt was through
  EXPECT_DOUBLE_EQ(report_of(stall, 0).during_ms.max, 610);
}

TEST(StallReport, limits_are_factors_of_the_gap_before_or_milliseconds) {
  StallReport report = report_of(undisturbed(), 0);
  const auto over = [&] {
    std::vector<std::string> names;
    for (const StallCheck& check : checks_of(report, {})) {
      if (!check.holds()) names.push_back(check.name);
    }
    return names;
  };
  EXPECT_EQ(over(), std::vector<std::string>{});
  report.during_ms = {.p50 = 50, .p99 = 60, .max = 100};
  EXPECT_EQ(over(), std::vector<std::string>{});
  report.during_ms = {.p50 = 50, .p99 = 61, .max = 101};
  EXPECT_EQ(over(), (std::vector<std::string>{"gap p99", "gap max"}));
  report.before_ms.p50 = 30;
  EXPECT_EQ(over(), std::vector<std::string>{});
  report.small_ttft_ms = {100, 1001};
  report.beside_ms = 801;
  report.engine_alone_ms = 350;
  EXPECT_EQ(over(), (std::vector<std::string>{"small request 2", "prompt / alone",
                                              "beside / engine", "alone / engine"}));
}

TEST(StallReport, text_and_json_name_what_is_over) {
  StallSeen stall = undisturbed();
  stall.small[0].pieces = {at(2200)};
  stall.small[1].error = "503 no \"room\"";
  const StallReport report = report_of(stall, 0);
  const auto checks = checks_of(report, {});
  const std::string table = stall_table("http://x", "m", report, checks);
  EXPECT_NE(table.find("a prompt of 7800 tokens"), std::string::npos) << table;
  EXPECT_NE(table.find("OVER"), std::string::npos) << table;
  EXPECT_NE(table.find("failed: 503 no \"room\""), std::string::npos) << table;
  const std::string json = stall_json("http://x", "m", report, checks);
  EXPECT_NE(json.find(R"("over":["small request 1"],"error":"503 no \"room\"")"), std::string::npos)
      << json;
  EXPECT_NE(json.find(R"("gap_before_ms":{"p50":20.0,"p99":20.0,"max":20.0})"), std::string::npos)
      << json;
}

}  // namespace
}  // namespace flotilla::client
