#include "gateway/pool_runtime.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace flotilla::gateway {
namespace {

using std::chrono::seconds;

api::NodeSpec server_at(const std::string& id) {
  api::NodeSpec node;
  node.id = node.label = id;
  node.transport = "http";
  node.url = "http://" + id + "/v1";
  return node;
}

// A pool of servers elsewhere, with hands that do nothing.
struct PoolRuntimeTest : testing::Test, Launcher {
  PoolRuntimeTest() {
    GenerationSpec generation;
    generation.load.alias = "pool";
    generation.number = 1;
    PoolRuntime::Options about{.cluster = "c",
                               .generation = std::move(generation),
                               .created_unix_s = 0,
                               .settings = {},
                               .nodes = {}};
    pool = std::make_shared<PoolRuntime>(io.get_executor(), clock, random, *this, std::move(about));
  }

  void start(const std::shared_ptr<PoolRuntime>&,
             const std::shared_ptr<LaunchRuntime>& launch) override {
    started.push_back(launch->launch);
  }
  bool stop(const LaunchRuntime&, Duration) override { return false; }

  cluster::Launch add(const std::string& id) {
    pool->add_node(server_at(id), cluster::Link::Up);
    pool->pump();
    return started.back();
  }
  cluster::Launch add_ready(const std::string& id) {
    const cluster::Launch launch = add(id);
    pool->brain().on_ready(launch, {.external = true}, clock.now());
    pool->pump();
    return launch;
  }
  void follow(const std::vector<std::string>& ids) {
    std::vector<api::NodeSpec> nodes;
    for (const std::string& id : ids) nodes.push_back(server_at(id));
    pool->follow(nodes, [](const api::NodeSpec&) { return cluster::Link::Up; });
  }

  boost::asio::io_context io;
  ManualClock clock;
  Random random{1};
  std::vector<cluster::Launch> started;
  std::shared_ptr<PoolRuntime> pool;
};

TEST_F(PoolRuntimeTest, servers_that_come_and_go_leave_nothing_behind) {
  std::vector<cluster::Launch> gone;
  for (int i = 0; i < 40; ++i) {
    const std::string id = "pod-" + std::to_string(i);
    // Every other one never answered.
    gone.push_back(i % 2 == 0 ? add_ready(id) : add(id));
    if (i % 2 != 0) pool->brain().on_start_failed(gone.back(), "nobody is there", clock.now());
    pool->note_log_tail(NodeId(id), "its last words");
    follow({});
    EXPECT_TRUE(pool->options().nodes.empty()) << id;
    EXPECT_EQ(pool->node_spec(NodeId(id)), nullptr);
    EXPECT_EQ(pool->log_tail(NodeId(id)), "");
  }
  for (const cluster::Launch& launch : gone) {
    EXPECT_EQ(launch.replica, cluster::ReplicaIndex{0});
    EXPECT_EQ(pool->find_launch(launch), nullptr);
  }
}

TEST_F(PoolRuntimeTest, one_that_drains_is_known_until_it_has_stopped) {
  const cluster::Launch launch = add_ready("a");
  const cluster::Admission admission =
      pool->brain().submit({.id = cluster::TicketId{1}, .key = "k"}, clock.now());
  pool->pump();
  ASSERT_TRUE(std::holds_alternative<cluster::Dispatched>(admission));
  follow({});
  ASSERT_NE(pool->node_spec(NodeId("a")), nullptr);
  EXPECT_NE(pool->find_launch(launch), nullptr);
  EXPECT_TRUE(pool->nodes().empty());
  pool->brain().release(cluster::TicketId{1}, cluster::Outcome::Completed, {}, clock.now());
  pool->pump();
  EXPECT_EQ(pool->node_spec(NodeId("a")), nullptr);
  EXPECT_EQ(pool->find_launch(launch), nullptr);
}

TEST_F(PoolRuntimeTest, who_waits_when_all_are_others_waits_for_the_new_ones) {
  const cluster::Launch old = add_ready("a");
  (void)pool->brain().submit(
      {.id = cluster::TicketId{1}, .key = "k", .deadline = clock.now() + seconds(600)},
      clock.now());
  Waiter waiter(io.get_executor());
  pool->put_waiter(cluster::TicketId{1}, &waiter, "r");
  pool->brain().on_hang(old, "it does not answer", clock.now());
  pool->pump();
  const auto again =
      pool->brain().retry(cluster::TicketId{1}, cluster::Outcome::FailedBeforeFirstByte,
                          clock.now() + seconds(600), clock.now());
  pool->pump();
  ASSERT_TRUE(std::holds_alternative<cluster::Queued>(again));

  follow({"b", "c"});
  EXPECT_FALSE(waiter.refused) << waiter.refused->message;
  EXPECT_EQ(pool->nodes(), (std::vector{NodeId("b"), NodeId("c")}));
  pool->brain().on_ready(started.back(), {.external = true}, clock.now());
  pool->pump();
  ASSERT_NE(waiter.place, nullptr);
  EXPECT_EQ(waiter.place->node, NodeId("c"));
  pool->take_waiter(cluster::TicketId{1});
}

TEST_F(PoolRuntimeTest, a_reload_is_over_though_the_new_ones_have_the_old_ones_places) {
  add_ready("a");
  add_ready("b");
  GenerationSpec next = pool->generation();
  next.number = 2;
  pool->begin_generation(std::move(next));
  for (const char* id : {"a", "b"}) {
    pool->add_node(server_at(id), cluster::Link::Connecting);
    pool->retire(NodeId(id));
    pool->pump();
    EXPECT_TRUE(pool->retired(NodeId(id))) << id;
  }
  EXPECT_TRUE(pool->all_retired());
  pool->finish_generation();
  EXPECT_EQ(pool->nodes(), (std::vector{NodeId("a"), NodeId("b")}));
  EXPECT_EQ(pool->options().nodes.size(), 2U);
}

}  // namespace
}  // namespace flotilla::gateway
