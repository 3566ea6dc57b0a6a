#include "cluster/queue.h"

#include <array>
#include <chrono>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/random.h"

namespace flotilla::cluster {
namespace {

struct QueueTest : testing::Test {
  TicketId push(const std::string& key, std::uint64_t tokens = 100, Lane lane = Lane::Anywhere,
                double weight = 1) {
    Ticket ticket;
    ticket.id = TicketId{++last};
    ticket.key = key;
    ticket.weight = weight;
    ticket.tokens = tokens;
    ticket.bytes = tokens * 4;
    owner[ticket.id] = key;
    queue.push(ticket, lane);
    return ticket.id;
  }
  std::optional<TicketId> take(Lane lane = Lane::Anywhere) {
    const std::array lanes = {lane, Lane::Anywhere};
    return queue.take(lanes);
  }
  std::string take_key() { return owner.at(take().value()); }

  FairQueue queue;
  std::uint64_t last = 0;
  std::map<TicketId, std::string> owner;
};

TEST_F(QueueTest, first_in_first_out_within_a_key) {
  const TicketId a = push("k");
  const TicketId b = push("k", 1);
  EXPECT_EQ(take(), a);
  EXPECT_EQ(take(), b);
  EXPECT_FALSE(take());
}

TEST_F(QueueTest, one_client_with_200_requests_does_not_push_another_back) {
  for (int i = 0; i < 200; ++i) push("greedy");
  for (int i = 0; i < 10; ++i) (void)take();
  push("modest");
  (void)take();
  push("modest");
  int until = 0;
  while (take_key() != "modest") ++until;
  EXPECT_LE(until, 2);
}

TEST_F(QueueTest, equal_keys_share_by_tokens_not_by_requests) {
  for (int i = 0; i < 100; ++i) {
    push("long", 1000);
    for (int n = 0; n < 10; ++n) push("short", 100);
  }
  std::map<std::string, int> got;
  for (int i = 0; i < 220; ++i) ++got[take_key()];
  EXPECT_NEAR(got["short"], 200, 11);
  EXPECT_NEAR(got["long"], 20, 2);
}

TEST_F(QueueTest, weights_share_in_proportion) {
  for (int i = 0; i < 100; ++i) {
    push("one", 100, Lane::Anywhere, 1);
    push("three", 100, Lane::Anywhere, 3);
  }
  std::map<std::string, int> got;
  for (int i = 0; i < 80; ++i) ++got[take_key()];
  EXPECT_NEAR(got["three"], 60, 2);
}

TEST_F(QueueTest, rest_saves_up_no_credit_and_an_empty_server_makes_no_debt) {
  for (int i = 0; i < 100; ++i) queue.charge("early", 1, 1000);  // served at once, alone
  push("late");
  push("early");
  push("late");
  push("early");
  std::map<std::string, int> got;
  ++got[take_key()];
  ++got[take_key()];
  ++got[take_key()];
  EXPECT_GE(got["early"], 1);
}

TEST_F(QueueTest, the_runners_count_corrects_what_was_charged) {
  push("a", 100);
  push("b", 100);
  push("a", 100);
  push("b", 100);
  EXPECT_EQ(take_key(), "a");
  EXPECT_EQ(take_key(), "b");
  queue.correct("a", 1, 100, 5000);
  EXPECT_EQ(take_key(), "b");
  EXPECT_NEAR(queue.counter("a") - queue.counter("b"), 4900 - 100, 1);
}

TEST_F(QueueTest, a_home_lane_is_only_for_its_replica_and_can_be_given_up) {
  const Lane home = home_lane(ReplicaIndex{4});
  const TicketId waits = push("k", 100, home);
  const TicketId other = push("k");
  EXPECT_EQ(take(), other);
  EXPECT_FALSE(take());
  EXPECT_EQ(queue.size(home), 1U);
  const TicketId later = push("k");
  queue.move_all_to_anywhere(home);
  EXPECT_EQ(take(), waits);  // it came before
  EXPECT_EQ(take(), later);
}

TEST_F(QueueTest, the_earlier_of_one_keys_lanes_is_next) {
  const Lane home = home_lane(ReplicaIndex{0});
  const TicketId first = push("k", 100, home);
  const TicketId second = push("k");
  EXPECT_EQ(take(home), first);
  EXPECT_EQ(take(home), second);
}

TEST_F(QueueTest, removed_tickets_leave_no_bytes) {
  const TicketId a = push("k");
  push("k");
  EXPECT_EQ(queue.bytes(), 800U);
  EXPECT_TRUE(queue.remove(a));
  EXPECT_FALSE(queue.remove(a));
  EXPECT_EQ(queue.bytes(), 400U);
  EXPECT_EQ(queue.clear().size(), 1U);
  EXPECT_EQ(queue.bytes(), 0U);
  EXPECT_EQ(queue.tokens(), 0U);
}

TEST_F(QueueTest, keys_that_came_once_are_forgotten) {
  for (int i = 0; i < 20'000; ++i) {
    push("key" + std::to_string(i), 1);
    (void)take();
  }
  EXPECT_LT(queue.keys(), 10'000U);
}

// Two keys that never stop waiting get the same tokens but for one ticket each, whatever else comes
// and goes.
TEST_F(QueueTest, the_gap_between_two_backlogged_keys_is_bounded) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    queue = FairQueue();
    std::map<std::string, double> served;
    std::map<TicketId, std::uint64_t> tokens;
    const auto add = [&](const std::string& key) {
      const std::uint64_t cost = 1 + random.below(500);
      tokens[push(key, cost)] = cost;
    };
    for (int i = 0; i < 3; ++i) {
      add("a");
      add("b");
    }
    for (int step = 0; step < 2000; ++step) {
      if (random.chance(0.3)) add("other" + std::to_string(random.below(5)));
      const TicketId id = take().value();
      served[owner[id]] += static_cast<double>(tokens[id]);
      if (owner[id] == "a" || owner[id] == "b") add(owner[id]);
      ASSERT_LE(std::abs(served["a"] - served["b"]), 1000);
    }
  }
}

TEST(DrainRate, follows_what_leaves) {
  DrainRate rate;
  Instant now = Instant{} + std::chrono::hours(1);
  EXPECT_EQ(rate.per_second(now), 0);
  for (int i = 0; i < 600; ++i) {
    now += std::chrono::milliseconds(100);
    rate.add(10, now);
    if (i > 30) {
      EXPECT_NEAR(rate.per_second(now), 100, 15) << i;
    }
  }
  EXPECT_LT(rate.per_second(now + std::chrono::minutes(5)), 1);
}

}  // namespace
}  // namespace flotilla::cluster
