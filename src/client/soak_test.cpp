#include "client/soak.h"

#include <gtest/gtest.h>

namespace flotilla::client {
namespace {

SoakSeen steady(int generations) {
  SoakSeen seen;
  seen.wall_s = 10;
  for (int i = 0; i < generations; ++i) {
    seen.generations.push_back({.ms = 20.0 + i % 3, .tokens = 8, .whole = true});
    seen.resident.push_back(1000);
  }
  return seen;
}

TEST(Soak, a_steady_server_neither_slows_nor_grows) {
  const SoakReport report = report_of(steady(1000));
  EXPECT_EQ(report.generations, 1000);
  EXPECT_EQ(report.failed, 0);
  EXPECT_DOUBLE_EQ(report.tokens_per_s, 800);
  EXPECT_DOUBLE_EQ(report.first_ms, 21);
  EXPECT_DOUBLE_EQ(report.at_500_ms, 21);
  EXPECT_DOUBLE_EQ(report.slowdown(), 1);
  EXPECT_DOUBLE_EQ(report.resident_growth(), 0);
}

TEST(Soak, growth_is_the_last_quarter_against_the_first) {
  SoakSeen seen = steady(1000);
  for (std::size_t i = 500; i < 1000; ++i) seen.resident[i] = 1030;
  EXPECT_NEAR(report_of(seen).resident_growth(), 0.03, 1e-9);
}

TEST(Soak, generation_500_is_compared_with_the_first) {
  SoakSeen seen = steady(1000);
  for (std::size_t i = 400; i < 1000; ++i) seen.generations[i].ms *= 3;
  EXPECT_NEAR(report_of(seen).slowdown(), 3, 1e-9);
  seen.generations.resize(480);
  seen.resident.resize(480);
  const SoakReport few = report_of(seen);
  EXPECT_EQ(few.at_500_ms, 0);
  EXPECT_NEAR(few.slowdown(), 3, 1e-9);
}

TEST(Soak, text_and_json_name_failures) {
  SoakSeen seen = steady(100);
  seen.generations[3].whole = false;
  seen.error = "503 \"full\"";
  const SoakReport report = report_of(seen);
  EXPECT_EQ(report.failed, 1);
  EXPECT_NE(soak_table("http://x", "m", report).find("503 \"full\""), std::string::npos);
  EXPECT_NE(soak_json("http://x", "m", report).find(R"("failed":1)"), std::string::npos);
  EXPECT_EQ(report_of(SoakSeen{}).generations, 0);
}

}  // namespace
}  // namespace flotilla::client
