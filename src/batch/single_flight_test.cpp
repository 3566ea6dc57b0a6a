#include "batch/single_flight.h"

#include <map>

#include <gtest/gtest.h>

namespace flotilla::batch {
namespace {

std::vector<engine::Token> count(int n, int from = 0) {
  std::vector<engine::Token> tokens;
  for (int i = 0; i < n; ++i) tokens.push_back(from + i);
  return tokens;
}

struct SingleFlightTest : testing::Test {
  // Follows or leads; true: it follows.
  bool enter(SequenceId id, std::vector<engine::Token> tokens, int reusable = 0,
             const std::string& group = "") {
    Newcomer newcomer{.id = id, .group = group, .tokens = std::move(tokens)};
    if (flight.follow(newcomer, reusable)) return true;
    flight.lead(newcomer);
    return false;
  }
  std::vector<SingleFlight::Ready> ready() {
    return flight.take_ready([this](SequenceId id) -> std::optional<int> {
      const auto found = held.find(id);
      if (found == held.end()) return std::nullopt;
      return found->second;
    });
  }
  SingleFlight flight;
  std::map<SequenceId, int> held;
};

TEST_F(SingleFlightTest, TheSecondWaitsForWhatItShares) {
  EXPECT_FALSE(enter(1, count(400)));
  EXPECT_TRUE(enter(2, count(400)));
  auto other = count(300);
  other.push_back(7777);
  EXPECT_TRUE(enter(3, other));
  held[1] = 0;
  EXPECT_TRUE(ready().empty());
  held[1] = 300;
  auto now = ready();
  ASSERT_EQ(now.size(), 1U);
  EXPECT_EQ(now[0].newcomer.id, 3U);
  EXPECT_EQ(now[0].newcomer.tokens, other);
  EXPECT_EQ(now[0].leader, 1U);
  held[1] = 399;
  now = ready();
  ASSERT_EQ(now.size(), 1U) << "the last token of the second is computed in any case";
  EXPECT_EQ(now[0].newcomer.id, 2U);
  EXPECT_EQ(flight.following(), 0);
}

TEST_F(SingleFlightTest, LittleIsComputedAtOnce) {
  EXPECT_FALSE(enter(1, count(4000)));
  EXPECT_FALSE(enter(2, count(100))) << "short";
  auto other = count(100);
  for (int i = 0; i < 300; ++i) other.push_back(9000 + i);
  EXPECT_FALSE(enter(3, other)) << "shares little";
  EXPECT_FALSE(enter(4, count(3000), 2900)) << "the rest is in store";
  auto part = count(150);
  part.resize(500, 5);
  EXPECT_FALSE(enter(5, part)) << "150 tokens are not worth copying 3000";
  EXPECT_FALSE(enter(6, count(3000), 0, "another")) << "of another group";
}

TEST_F(SingleFlightTest, ALeaderThatIsGoneHoldsNobody) {
  enter(1, count(400));
  EXPECT_TRUE(enter(2, count(400)));
  EXPECT_TRUE(enter(3, count(400)));
  flight.end(1);
  flight.end(2);
  const auto now = ready();
  ASSERT_EQ(now.size(), 1U);
  EXPECT_EQ(now[0].newcomer.id, 3U);
  EXPECT_EQ(now[0].leader, 0U);
  EXPECT_FALSE(enter(4, count(400))) << "nobody leads";
}

TEST_F(SingleFlightTest, AFollowerRemembersThatItIsParked) {
  enter(1, count(400));
  enter(2, count(400));
  flight.park(2, true);
  flight.park(1, true);
  flight.park(99, true);
  held[1] = 400;
  EXPECT_TRUE(ready().at(0).newcomer.parked);
}

}  // namespace
}  // namespace flotilla::batch
