#include "api/read_answers.h"

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

TEST(ReadAnswers, status_survives_the_way_through_json) {
  ClusterStatus status;
  status.spec.id = "local";
  status.loading = {
      {.alias = "m",
       .elapsed_s = 1.5,
       .eta_s = 2.5,
       .nodes = {{.node = "a", .phase = "loading", .loaded_bytes = 7, .total_bytes = 9}}}};
  PoolStatus pool;
  pool.alias = "m";
  pool.batch = true;
  pool.batch_size = 8;
  pool.queue_depth = 3;
  ReplicaStatus replica;
  replica.index = 1;
  replica.node = "a";
  replica.live = true;
  replica.state = "ready";
  replica.busy_count = 2;
  replica.next_retry_in_s = 12;
  pool.replicas = {replica};
  status.pools = {pool};
  const auto again = read_status(status_json(status));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(status_json(*again), status_json(status));
}

TEST(ReadAnswers, status_of_a_newer_server_is_read_as_far_as_it_is_known) {
  const auto status =
      read_status(R"({"cluster":"c","pools":[{"alias":"m","queue_depth":"many","new":1}],"x":{}})");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->pools.at(0).alias, "m");
  EXPECT_EQ(status->pools.at(0).queue_depth, 0);
  EXPECT_FALSE(read_status(R"({"status":"ok"})"));
  EXPECT_FALSE(read_status("<html>"));
}

TEST(ReadAnswers, clusters_survive_the_way_through_json) {
  ClusterSpec cluster;
  cluster.id = cluster.label = "c";
  cluster.nodes = *parse_node_shorthand("n*2");
  const auto again = read_clusters(clusters_json({cluster}));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->at(0), cluster);
}

TEST(ReadAnswers, chat_events_of_ours_and_of_other_engines) {
  EXPECT_EQ(
      read_chat_event(R"({"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]})")
          ->text,
      "a");
  EXPECT_EQ(
      read_chat_event(R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})")
          ->text,
      "");
  EXPECT_EQ(
      read_chat_event(R"({"choices":[{"delta":{},"finish_reason":"length"}]})")->finish_reason,
      "length");
  const auto usage =
      read_chat_event(R"({"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}})");
  EXPECT_TRUE(usage->has_usage);
  EXPECT_EQ(usage->usage.completion_tokens, 4);
  EXPECT_FALSE(read_chat_event(R"({"choices":[],"usage":null})")->has_usage);
  const auto error = read_chat_event(R"({"error":{"message":"no replica is left"}})");
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().message, "no replica is left");
}

TEST(ReadAnswers, models_that_are_not_ready_are_left_out) {
  const auto models = read_ready_models(
      R"({"data":[{"id":"a","x_flotilla":{"ready":true}},{"id":"b","x_flotilla":{"ready":false}},{"id":"c"}]})");
  ASSERT_TRUE(models);
  EXPECT_EQ(*models, (std::vector<std::string>{"a", "c"}));
}

}  // namespace
}  // namespace flotilla::api
