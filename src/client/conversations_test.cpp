#include "client/conversations.h"

#include <gtest/gtest.h>

namespace flotilla::client {
namespace {

TurnSeen turn(int number, std::string node, std::uint64_t computed, bool at_home) {
  TurnSeen out;
  out.turn = number;
  out.node = std::move(node);
  out.computed_tokens = computed;
  out.at_home = at_home;
  return out;
}

TEST(ConversationsTest, CountsHomesOfLaterTurnsAndTheWorkOfEachNode) {
  std::vector<TurnSeen> turns{turn(0, "a", 100, false), turn(1, "a", 50, true),
                              turn(0, "b", 60, false), turn(1, "a", 30, false)};
  turns.emplace_back().error = "503";
  const ConversationReport report = report_of(turns);
  EXPECT_EQ(report.turns, 5);
  EXPECT_EQ(report.failed, 1);
  EXPECT_EQ(report.first_error, "503");
  EXPECT_DOUBLE_EQ(report.at_home, 0.5);
  EXPECT_DOUBLE_EQ(report.busiest_to_least, 3.0);
  EXPECT_EQ(report.work.at("a"), 180U);
}

TEST(ConversationsTest, NothingIsNoDivisionByZero) {
  const ConversationReport report = report_of(std::vector<TurnSeen>{});
  EXPECT_EQ(report.turns, 0);
  EXPECT_EQ(report.at_home, 0);
  EXPECT_NE(conversation_json(report).find("\"turns\":0"), std::string::npos);
}

}  // namespace
}  // namespace flotilla::client
