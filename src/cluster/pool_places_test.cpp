#include <chrono>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "cluster/test_pool.h"

// Nodes that come and go for as long as the pool lives.
namespace flotilla::cluster {
namespace {

using std::chrono::seconds;

std::vector<std::string> nodes_of(const PoolStatus& status) {
  std::vector<std::string> out;
  for (const ReplicaStatus& replica : status.replicas) out.push_back(replica.node.str());
  return out;
}

TEST_F(PoolTest, nodes_that_come_and_go_take_each_others_places_and_no_launch_is_there_twice) {
  std::set<Launch> seen{add_ready("stays", 1)};
  EXPECT_EQ(submit(), 0);
  for (int i = 0; i < 100; ++i) {
    const Launch one = add_ready("pod-" + std::to_string(i), 1);
    EXPECT_EQ(one.replica, ReplicaIndex{1});
    EXPECT_TRUE(seen.insert(one).second);
    EXPECT_EQ(submit(), 1);
    release(last_id);
    pool.drain(one.replica, AfterDrain::Remove, false, now);
    drain();
    EXPECT_EQ(pool.snapshot(now).replicas_total, 1);
  }
  EXPECT_EQ(stops, 100);
}

TEST_F(PoolTest, a_place_is_given_away_only_when_nobody_who_was_in_it_is_left) {
  const Launch old = add_ready("a", 1);
  EXPECT_EQ(submit(), 0);
  pool.first_byte(TicketId{1}, now);
  pool.drain(old.replica, AfterDrain::Remove, true, now);
  drain();
  ASSERT_EQ(dropped.size(), 1U);
  const Launch other = add_ready("b", 1, Generation{2});
  EXPECT_NE(other.replica, old.replica) << "its owner has not asked for another place yet";
  EXPECT_EQ(retry(1, Outcome::LostAfterFirstByte), -2) << "nobody of its generation is left";
  EXPECT_EQ(error.reason, "no_live_replica");

  const Launch next = add("c", Generation{2});
  EXPECT_EQ(next.replica, old.replica);
  EXPECT_GT(next.number, old.number);
}

TEST_F(PoolTest, news_of_who_had_the_place_is_not_the_next_ones) {
  const Launch old = add_ready("a", 1);
  pool.drain(old.replica, AfterDrain::Remove, false, now);
  drain();
  const ReplicaIndex index = pool.add_replica(NodeId("b"), Generation{1}, Link::Connecting, now);
  drain();
  ASSERT_EQ(index, old.replica);
  pool.on_loading(old, 1, 2, now);
  pool.on_ready(old, {.width = 4}, now);
  pool.on_exited(old, {.reason = "killed", .own_fault = true}, now);
  drain();
  const ReplicaStatus waits = pool.snapshot(now).replicas.at(0);
  EXPECT_EQ(waits.state, ReplicaState::Starting);
  EXPECT_EQ(waits.last_error, "");
  pool.on_node_back(NodeId("b"), now);
  drain();
  ready(launches.at(index));
  EXPECT_EQ(submit(), 0);
}

TEST_F(PoolTest, a_conversation_is_not_at_home_where_another_had_its_state) {
  const auto turn = [this] {
    Ticket out = ticket();
    out.conversation.session = 7;
    return out;
  };
  const Launch old = add_ready("a", 1);
  EXPECT_EQ(submit(turn()), 0);
  release(1);
  ASSERT_EQ(pool.sessions(10, now).size(), 1U);
  pool.drain(old.replica, AfterDrain::Remove, false, now);
  drain();
  ASSERT_EQ(add_ready("b", 1).replica, old.replica);
  EXPECT_TRUE(pool.sessions(10, now).empty());
  const Admission admission = pool.submit(turn(), now);
  const auto* there = std::get_if<Dispatched>(&admission);
  ASSERT_NE(there, nullptr);
  EXPECT_EQ(there->why, Why::LeastBusy);
}

TEST_F(PoolTest, status_has_them_in_the_order_in_which_they_came) {
  for (const char* node : {"a", "b", "c"}) add_ready(node);
  pool.drain(ReplicaIndex{0}, AfterDrain::Remove, false, now);
  drain();
  add_ready("d");
  EXPECT_EQ(nodes_of(pool.snapshot(now)), (std::vector<std::string>{"b", "c", "d"}));
}

TEST_F(PoolTest, who_has_begun_here_is_not_tried_alone_in_the_engine_that_was_cleared_for_another) {
  const Launch first = add_ready("a");
  const Launch second = add_ready("b");
  const Launch theirs = add("c");
  pool.on_ready(theirs, {.width = 2, .external = true}, now);
  drain();
  while (submit() != 0) {
  }
  const std::uint64_t begun = last_id;
  for (std::uint64_t id = 1; id < begun; ++id) release(id);
  pool.first_byte(TicketId{begun}, now);
  crash(first);
  ASSERT_EQ(retry(begun, Outcome::LostAfterFirstByte), 1);
  while (submit() != 1) {
  }
  const std::uint64_t other = last_id;
  ASSERT_GT(other, begun + 1) << "the engine has one";

  crash(second, true);  // both may have done it
  EXPECT_EQ(retry(other, Outcome::FailedBeforeFirstByte), -1) << "it waits for the engine alone";
  EXPECT_EQ(retry(begun, Outcome::LostAfterFirstByte), -1);
  pool.cancel(TicketId{other}, now);
  drain();
  for (std::uint64_t id = begun + 1; id < other; ++id) release(id);
  EXPECT_FALSE(sent(begun));
  EXPECT_EQ(submit(), 2) << "the engine takes what is new";
  pass(seconds(34));
  EXPECT_FALSE(sent(begun));
  ready(launches.at(first.replica));
  EXPECT_EQ(dispatched.at(begun), 0);
}

}  // namespace
}  // namespace flotilla::cluster
