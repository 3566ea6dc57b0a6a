#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "cluster/affinity.h"
#include "cluster/test_pool.h"

namespace flotilla::cluster {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(PoolTest, requests_spread_then_wait_then_take_the_place_that_frees) {
  add_ready("a");
  add_ready("b");
  std::map<int, int> got;
  for (int i = 0; i < 4; ++i) ++got[submit()];
  EXPECT_EQ(got[0], 2);
  EXPECT_EQ(got[1], 2);
  EXPECT_EQ(submit(), -1);
  EXPECT_EQ(pool.queue_depth(), 1U);
  EXPECT_EQ(pool.in_flight(), 4U);
  release(1);
  EXPECT_TRUE(sent(5));
  EXPECT_EQ(pool.queue_depth(), 0U);
}

// By an engine that counts no prompts, or for a client that left before it did.
TEST_F(PoolTest, what_was_made_counts_though_nobody_counted_the_prompt) {
  add_ready("a", 1);
  EXPECT_EQ(submit(ticket("talks much")), 0);
  EXPECT_EQ(submit(ticket("talks much")), -1);
  EXPECT_EQ(submit(ticket("other")), -1);
  EXPECT_EQ(submit(ticket("other")), -1);
  pool.release(TicketId{1}, Outcome::Cancelled, {.completion_tokens = 1000}, now);
  drain();
  EXPECT_TRUE(sent(3));
  release(3);
  EXPECT_TRUE(sent(4)) << "both of the other are less than it";
  release(4);
  EXPECT_TRUE(sent(2));
}

TEST_F(PoolTest, a_loading_pool_queues_and_serves_when_ready) {
  const Launch a = add("a");
  EXPECT_EQ(submit(), -1);
  ready(a);
  EXPECT_EQ(dispatched.at(1), 0);
}

TEST_F(PoolTest, a_full_queue_is_429_while_one_lives_else_503) {
  PoolSettings small = settings();
  small.queue.tickets_max = 3;
  pool.configure(small, now);
  const Launch a = add_ready("a", 1);
  EXPECT_EQ(submit(), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(submit(), -1);
  EXPECT_EQ(submit(), -2);
  EXPECT_EQ(error.code, Code::ResourceExhausted);
  EXPECT_GE(error.retry_after_s, 1);
  crash(a);
  EXPECT_EQ(submit(), -2);
  EXPECT_EQ(error.code, Code::Unavailable);
  EXPECT_GE(error.retry_after_s, 30);
  EXPECT_LE(error.retry_after_s, 33);
}

TEST_F(PoolTest, bytes_in_the_queue_are_bounded) {
  PoolSettings small = settings();
  small.queue.bytes_max = 1000;
  pool.configure(small, now);
  add("a");
  EXPECT_EQ(submit(), -1);
  EXPECT_EQ(submit(), -1);
  EXPECT_EQ(submit(), -2);
  EXPECT_EQ(error.reason, "queue_full");
}

TEST_F(PoolTest, nobody_lives_and_none_is_due_in_time_is_refused_at_once) {
  crash(add("a"));
  Ticket short_one = ticket();
  short_one.deadline = now + seconds(10);
  EXPECT_EQ(submit(std::move(short_one)), -2);
  EXPECT_EQ(error.code, Code::Unavailable);
  EXPECT_EQ(submit(), -1);  // 600 s: the next attempt is due before
}

TEST_F(PoolTest, waited_out_is_429_503_or_504_as_the_case_may_be) {
  const Launch a = add_ready("a", 1);
  EXPECT_EQ(submit(), 0);
  Ticket mine = ticket();
  mine.deadline = now + seconds(5);
  mine.own_timeout = true;
  Ticket ours = ticket();
  ours.deadline = now + seconds(5);
  submit(std::move(mine));
  submit(std::move(ours));
  pass(seconds(6));
  EXPECT_EQ(refusals.at(2).code, Code::DeadlineExceeded);
  EXPECT_EQ(refusals.at(3).code, Code::ResourceExhausted);
  submit();
  crash(a);
  release(1, Outcome::Cancelled);
  launches.clear();
  pass(seconds(601));
  EXPECT_EQ(refusals.at(4).code, Code::Unavailable);
  EXPECT_EQ(pool.queue_depth(), 0U);
}

TEST_F(PoolTest, a_lost_runners_requests_go_to_another_before_the_queue) {
  const Launch a = add_ready("a", 1);
  add_ready("b", 1);
  const bool first_on_a = submit() == 0;
  submit();
  const std::uint64_t on_a = first_on_a ? 1 : 2;
  const std::uint64_t on_b = first_on_a ? 2 : 1;
  submit();
  crash(a);
  ASSERT_EQ(dropped, std::vector{TicketId{on_a}});
  EXPECT_EQ(retry(on_a, Outcome::LostAfterFirstByte), -1);
  release(on_b);
  EXPECT_TRUE(sent(on_a));
  EXPECT_FALSE(sent(3));
  release(on_a);
  EXPECT_TRUE(sent(3));
}

TEST_F(PoolTest, an_answer_that_has_begun_goes_on_in_no_engine_that_is_not_ours) {
  const Launch ours = add_ready("a", 2);
  const Launch theirs = add("b");
  pool.on_ready(theirs, {.width = 8, .external = true}, now);
  drain();
  std::vector<std::uint64_t> on_ours;
  while (on_ours.size() < 2)
    if (submit() == 0) on_ours.push_back(last_id);
  crash(ours);
  EXPECT_EQ(retry(on_ours[0], Outcome::LostAfterFirstByte), -1) << "it waits for one of ours";
  EXPECT_EQ(retry(on_ours[1], Outcome::FailedBeforeFirstByte), 1) << "this one begins anew";
  EXPECT_EQ(submit(), 1);
  pass(seconds(34));
  EXPECT_FALSE(sent(on_ours[0]));
  ready(launches.at(ours.replica));
  EXPECT_EQ(dispatched.at(on_ours[0]), 0);
}

TEST_F(PoolTest, without_one_of_ours_an_answer_that_has_begun_ends_with_an_error) {
  const Launch ours = add_ready("a", 1);
  const Launch theirs = add("b");
  pool.on_ready(theirs, {.width = 1, .external = true}, now);
  drain();
  while (submit() != 0) {
  }
  const std::uint64_t mine = last_id;
  crash(ours);
  EXPECT_EQ(retry(mine, Outcome::LostAfterFirstByte), -1);
  pool.drain(ours.replica, AfterDrain::Remove, true, now);
  drain();
  EXPECT_EQ(refusals.at(mine).reason, "no_live_replica");
}

TEST_F(PoolTest, an_engine_that_is_not_ours_and_knows_no_batch_gets_one_request_at_a_time) {
  PoolSettings more = settings();
  more.ahead = 2;
  pool.configure(more, now);
  pool.on_ready(add("single"), {.width = 1, .external = true}, now);
  pool.on_ready(add("several"), {.width = 4, .external = true}, now);
  drain();
  const PoolStatus status = pool.snapshot(now);
  EXPECT_EQ(status.replicas.at(0).places, 1);
  EXPECT_EQ(status.replicas.at(1).places, 6);
}

TEST_F(PoolTest, one_lives_so_the_pool_is_up) {
  std::vector<Launch> all;
  for (const char* node : {"a", "b", "c"}) all.push_back(add_ready(node));
  crash(all[0]);
  crash(all[1]);
  EXPECT_EQ(pool.live_count(), 1);
  EXPECT_EQ(submit(), 2);
}

TEST_F(PoolTest, a_failure_of_a_living_runner_excludes_it_while_there_is_another) {
  add_ready("a");
  add_ready("b");
  const int first = submit();
  EXPECT_EQ(retry(1, Outcome::FailedBeforeFirstByte), -1);  // perhaps it is dying
  pass(milliseconds(250));
  EXPECT_EQ(dispatched.at(1), 1 - first);
}

TEST_F(PoolTest, sockets_that_tell_before_the_process_does_hide_no_suspect) {
  const Launch a = add_ready("a", 8);
  const Launch b = add_ready("b", 8);
  const Launch at = submit() == 0 ? a : b;
  EXPECT_EQ(retry(1, Outcome::FailedBeforeFirstByte), -1);
  crash(at, true);
  ASSERT_TRUE(sent(1));
  const int other = dispatched.at(1);
  EXPECT_EQ(submit(), -1);  // it is alone there
  EXPECT_EQ(retry(1, Outcome::FailedBeforeFirstByte), -1);
  crash(other == 0 ? a : b, true);
  EXPECT_EQ(refusals.at(1).reason, "poison");
}

TEST_F(PoolTest, the_only_replica_gets_a_failed_request_again_then_is_launched_afresh) {
  add_ready("a");
  EXPECT_EQ(submit(), 0);
  int failures = 0;
  do {
    dispatched.clear();
    EXPECT_EQ(retry(1, Outcome::FailedBeforeFirstByte), -1);
    ++failures;
    pass(seconds(5));
  } while (sent(1) && failures < 20);
  EXPECT_EQ(failures, 8);
  EXPECT_EQ(stops, 1);
  pass(seconds(33));
  ready(launches.at(ReplicaIndex{0}));
  EXPECT_TRUE(sent(1));
  EXPECT_EQ(retry(1, Outcome::FailedBeforeFirstByte), -1);
  pass(seconds(1));
  EXPECT_EQ(refusals.at(1).reason, "replicas_failed");
}

TEST_F(PoolTest, a_requests_own_fault_marks_no_replica) {
  add_ready("a", 1);
  for (std::uint64_t i = 1; i <= 50; ++i) {
    EXPECT_EQ(submit(), 0);
    release(i, Outcome::RequestFault);
  }
  EXPECT_EQ(stops, 0);
}

TEST_F(PoolTest, a_request_that_kills_two_runners_ends_and_its_neighbours_go_on) {
  const Launch a = add_ready("a", 8);
  const Launch b = add_ready("b", 8);
  Launch at = submit() == 0 ? a : b;
  crash(at, true);
  EXPECT_EQ(retry(1, Outcome::FailedBeforeFirstByte), -1);
  ASSERT_TRUE(sent(1));
  const Launch other =
      dispatched.at(1) == 0 ? launches.at(ReplicaIndex{0}) : launches.at(ReplicaIndex{1});
  EXPECT_NE(submit(), static_cast<int>(other.replica));  // it is alone
  crash(other, true);
  EXPECT_EQ(retry(1, Outcome::FailedBeforeFirstByte), -2);
  EXPECT_EQ(error.code, Code::Internal);
  EXPECT_EQ(error.reason, "poison");
}

TEST_F(PoolTest, a_suspect_that_survives_a_step_is_cleared) {
  const Launch a = add_ready("a", 8);
  const Launch b = add_ready("b", 8);
  const int at = submit();
  crash(at == 0 ? a : b, true);
  retry(1, Outcome::FailedBeforeFirstByte);
  const int alone = dispatched.at(1);
  EXPECT_EQ(submit(), -1);  // the only live one is taken
  pool.first_byte(TicketId{1}, now);
  drain();
  EXPECT_EQ(dispatched.at(2), alone);
  crash(alone == 0 ? a : b, true);  // not its doing: it had survived a step
  EXPECT_EQ(retry(1, Outcome::LostAfterFirstByte), -1);
}

TEST_F(PoolTest, a_killed_runner_makes_nobody_suspect) {
  const Launch a = add_ready("a", 8);
  add_ready("b", 8);
  while (submit() != 0) {
  }
  const std::uint64_t mine = last_id;
  for (int i = 0; i < 3; ++i) {
    crash(launches.at(a.replica), false);
    if (i > 0) break;
    EXPECT_EQ(retry(mine, Outcome::FailedBeforeFirstByte), 1);
  }
}

TEST_F(PoolTest, a_conversation_stays_on_its_home) {
  for (const char* node : {"a", "b", "c", "d"}) add_ready(node, 4);
  for (int user = 0; user < 8; ++user) {
    int home = -1;
    for (int turn = 0; turn < 5; ++turn) {
      Ticket t = ticket();
      t.conversation = conversation_keys("g", "user " + std::to_string(user), {});
      const std::uint64_t id = last_id;
      const int at = submit(std::move(t));
      if (home >= 0) {
        EXPECT_EQ(at, home);
      }
      home = at;
      release(id);
    }
  }
}

TEST_F(PoolTest, it_waits_for_a_full_home_only_as_long_as_prefilling_anew_would_take) {
  add_ready("a", 1);
  add_ready("b", 1);
  Ticket first = ticket("k", 2000);
  first.conversation = conversation_keys("g", "s", {});
  const int home = submit(std::move(first));
  Ticket second = ticket("k", 2000);  // 4 s at 500 tokens/s
  second.conversation = conversation_keys("g", "s", {});
  EXPECT_EQ(submit(std::move(second)), -1);
  EXPECT_EQ(pool.snapshot(now).replicas[static_cast<std::size_t>(home)].queued, 1);
  pass(seconds(3));
  EXPECT_FALSE(sent(2));
  pass(seconds(2));
  EXPECT_EQ(dispatched.at(2), 1 - home);
}

// Its prompt is computed once: another replica would be as fast as for one choice.
TEST_F(PoolTest, many_choices_do_not_wait_longer_for_a_full_home) {
  add_ready("a", 1);
  add_ready("b", 1);
  Ticket first = ticket("k", 2000);
  first.conversation = conversation_keys("g", "s", {});
  const int home = submit(std::move(first));
  Ticket second = ticket("k", 16'000);  // eight choices
  second.prompt_tokens = 2000;
  second.conversation = conversation_keys("g", "s", {});
  EXPECT_EQ(submit(std::move(second)), -1);
  pass(seconds(5));
  EXPECT_EQ(dispatched.at(2), 1 - home);
}

TEST_F(PoolTest, who_waits_for_a_home_that_dies_goes_elsewhere_at_once) {
  const Launch a = add_ready("a", 1);
  const Launch b = add_ready("b", 1);
  Ticket first = ticket("k", 5000);
  first.conversation = conversation_keys("g", "s", {});
  const int home = submit(std::move(first));
  Ticket second = ticket("k", 5000);
  second.conversation = conversation_keys("g", "s", {});
  EXPECT_EQ(submit(std::move(second)), -1);
  crash(home == 0 ? a : b);
  EXPECT_EQ(dispatched.at(2), 1 - home);
}

TEST_F(PoolTest, a_node_that_returns_after_an_hour_is_started_at_once) {
  add_ready("a");
  add_ready("b");
  pool.on_node_lost(NodeId("a"), "silent for 15 s", now);
  drain();
  EXPECT_EQ(submit(), 1);
  pass(hours(1));
  EXPECT_EQ(starts, 2);
  pool.on_node_back(NodeId("a"), now);
  drain();
  EXPECT_EQ(starts, 3);
}

TEST_F(PoolTest, a_hang_is_seen_and_its_requests_are_dropped) {
  add_ready("a");
  EXPECT_EQ(submit(), 0);
  launches.clear();  // no heartbeat any more
  pass(milliseconds(5000));
  EXPECT_TRUE(dropped.empty());
  pass(seconds(1));
  EXPECT_EQ(dropped.size(), 1U);
  EXPECT_EQ(stops, 1);
}

TEST_F(PoolTest, a_gateway_that_stood_still_blames_no_runner) {
  add_ready("a");
  EXPECT_EQ(submit(), 0);
  pass(seconds(1));
  now += seconds(100);
  pool.tick(now);
  drain();
  EXPECT_TRUE(dropped.empty());
}

TEST_F(PoolTest, close_refuses_what_waits_and_stops_when_drained) {
  add_ready("a", 1);
  submit();
  submit();
  pool.close({.code = Code::NotFound, .message = "unloaded"}, false, now);
  drain();
  EXPECT_EQ(refusals.at(2).code, Code::NotFound);
  EXPECT_EQ(submit(), -2);
  EXPECT_FALSE(pool.stopped());
  release(1);
  EXPECT_TRUE(pool.stopped());
  EXPECT_EQ(stops, 1);
}

TEST_F(PoolTest, a_removed_nodes_streams_finish_or_move_when_time_is_over) {
  add_ready("a", 1);
  add_ready("b", 1);
  submit();
  submit();
  pool.drain(ReplicaIndex{0}, AfterDrain::Remove, false, now);
  drain();
  EXPECT_EQ(submit(), -1);
  pass(seconds(119));
  EXPECT_TRUE(dropped.empty());
  pass(seconds(2));
  ASSERT_EQ(dropped.size(), 1U);
  EXPECT_EQ(retry(static_cast<std::uint64_t>(dropped[0]), Outcome::LostAfterFirstByte), -1);
  EXPECT_EQ(pool.snapshot(now).replicas_total, 1);
}

TEST_F(PoolTest, a_reload_sends_new_requests_to_the_new_generation_and_resumes_in_the_old) {
  const Launch a = add_ready("a", 4);
  add_ready("b", 4);
  const std::uint64_t on_a = submit() == 0 ? 1 : 2;
  const Launch c = add("c", Generation{2});
  EXPECT_EQ(submit(), on_a == 1 ? 1 : 0);
  ready(c, 4);
  EXPECT_EQ(submit(), 2);
  EXPECT_EQ(pool.snapshot(now).generation, Generation{2});
  pool.drain(ReplicaIndex{0}, AfterDrain::Remove, false, now);
  pool.drain(ReplicaIndex{1}, AfterDrain::Remove, false, now);
  drain();
  crash(a);
  EXPECT_EQ(retry(on_a, Outcome::LostAfterFirstByte), 1);  // not in the new one
}

TEST_F(PoolTest, a_stream_whose_generation_is_gone_ends_with_an_error) {
  const Launch a = add_ready("a", 1);
  EXPECT_EQ(submit(), 0);
  crash(a);
  EXPECT_EQ(retry(1, Outcome::LostAfterFirstByte), -1);
  add_ready("b", 1, Generation{2});
  EXPECT_FALSE(sent(1));
  pool.drain(ReplicaIndex{0}, AfterDrain::Remove, false, now);
  drain();
  EXPECT_EQ(refusals.at(1).reason, "no_live_replica");
}

TEST_F(PoolTest, forty_conversations_of_five_turns_stay_home_and_spread) {
  for (const char* node : {"a", "b", "c", "d"}) add_ready(node, 10);
  std::map<int, int> home;
  std::map<int, int> turns_at;
  int at_home = 0;
  for (int turn = 0; turn < 5; ++turn) {
    std::vector<std::uint64_t> running;
    for (int user = 0; user < 40; ++user) {
      Ticket t = ticket("k", 32 + random.below(992));
      t.conversation = conversation_keys("g", "s" + std::to_string(user), {});
      running.push_back(last_id);
      int at = submit(std::move(t));
      if (at < 0) at = dispatched.contains(last_id) ? dispatched.at(last_id) : -1;
      if (turn > 0 && home.at(user) == at) ++at_home;
      home[user] = at;
      ++turns_at[at];
    }
    for (const std::uint64_t id : running) release(id);
  }
  EXPECT_GE(at_home, 152);  // of 160
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(turns_at[i], 50, 10) << i;
}

TEST_F(PoolTest, one_greedy_key_does_not_push_another_back) {
  add_ready("a", 1);
  for (int i = 0; i < 200; ++i) submit(ticket("greedy"));
  for (std::uint64_t id = 1; id < 5; ++id) release(id);
  Ticket modest = ticket("modest");
  const auto id = static_cast<std::uint64_t>(modest.id);
  submit(std::move(modest));
  release(5);
  release(6);
  EXPECT_TRUE(sent(id));
}

TEST_F(PoolTest, cancel_ends_a_ticket_wherever_it_is) {
  const Launch a = add_ready("a", 1);
  submit();
  submit();
  submit();
  pool.cancel(TicketId{2}, now);
  pool.cancel(TicketId{1}, now);
  drain();
  EXPECT_TRUE(sent(3));
  EXPECT_FALSE(sent(2));
  crash(a);
  pool.cancel(TicketId{3}, now);  // lost, not retried yet
  pool.cancel(TicketId{99}, now);
  EXPECT_EQ(pool.in_flight(), 0U);
  EXPECT_EQ(pool.queue_depth(), 0U);
}

TEST_F(PoolTest, an_adopted_runner_serves_without_a_start) {
  const ReplicaIndex index = pool.add_replica(NodeId("a"), Generation{1}, Link::Connecting, now);
  drain();
  EXPECT_EQ(submit(), -1);
  (void)pool.adopt(index, {.width = 2, .numerics = "x"}, now);
  drain();
  EXPECT_EQ(starts, 0);
  EXPECT_TRUE(sent(1));
}

TEST_F(PoolTest, status_tells_what_is) {
  const Launch a = add_ready("a");
  add("b");
  submit();
  const std::uint64_t before = pool.version();
  crash(a);
  EXPECT_GT(pool.version(), before);
  const PoolStatus status = pool.snapshot(now);
  EXPECT_EQ(status.replicas_live, 0);
  EXPECT_EQ(status.replicas_total, 2);
  EXPECT_EQ(status.replicas[0].last_error, "killed");
  EXPECT_GT(to_s(status.replicas[0].next_retry.value()), 29);
  EXPECT_EQ(status.replicas[1].state, ReplicaState::Starting);
}

}  // namespace
}  // namespace flotilla::cluster
