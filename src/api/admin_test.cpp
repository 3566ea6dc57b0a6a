#include "api/admin.h"

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

using testing::Test;

TEST(Cluster, round_trips_and_hides_secrets) {
  const auto cluster = parse_cluster(
      R"({"label":"Four Macs","nodes":[{"id":"a","threads":4,"env":{"GGML_X":"1"}},)"
      R"({"id":"b","transport":"http","url":"http://b:8080/v1","api_key":"hush","upstream_model":"m"}]})",
      "macs");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(to_json(*cluster, Secrets::Hidden).find("hush"), std::string::npos);
  const auto again = parse_cluster(to_json(*cluster, Secrets::Kept), "macs");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, *cluster);
}

struct Bad {
  std::string body;
  const char* names;  // must be in the message
};

TEST(Cluster, bad_bodies_are_refused_by_name) {
  for (const Bad& bad : {
           Bad{"[]", "object"},
           Bad{"{}", "nodes"},
           Bad{R"({"nodes":[]})", "nodes"},
           Bad{R"({"nodes":[1]})", "nodes[0]"},
           Bad{R"({"nodes":[{}]})", "id"},
           Bad{R"({"nodes":[{"id":"A b"}]})", "A b"},
           Bad{R"({"nodes":[{"id":"-a"}]})", "-a"},
           Bad{R"({"nodes":[{"id":"a"},{"id":"a"}]})", "twice"},
           Bad{R"({"nodes":[{"id":"a"}],"kind":"pipeline"})", "pipeline"},
           Bad{R"({"nodes":[{"id":"a"}],"colour":"red"})", "colour"},
           Bad{R"({"nodes":[{"id":"a","colour":"red"}]})", "colour"},
           Bad{R"({"nodes":[{"id":"a","transport":"carrier-pigeon"}]})", "carrier-pigeon"},
           Bad{R"({"nodes":[{"id":"a","transport":"http"}]})", "url"},
           Bad{R"({"nodes":[{"id":"a","transport":"http","url":"ftp://x"}]})", "ftp://x"},
           Bad{R"({"nodes":[{"id":"a","url":"http://x"}]})", "url"},
           Bad{R"({"nodes":[{"id":"a","env":{"LD_PRELOAD":"x"}}]})", "LD_PRELOAD"},
           Bad{R"({"nodes":[{"id":"a"}],"id":"other"})", "other"},
       }) {
    const auto cluster = parse_cluster(bad.body, "c");
    ASSERT_FALSE(cluster) << bad.body;
    EXPECT_NE(cluster.error().message.find(bad.names), std::string::npos)
        << bad.body << " -> " << cluster.error().message;
  }
  EXPECT_FALSE(parse_cluster(R"({"nodes":[{"id":"a"}]})", "Bad Id"));
}

TEST(Cluster, a_misplaced_key_is_not_repeated_in_the_error) {
  const auto cluster = parse_cluster(R"({"nodes":[{"id":"a","api_key":"hush"}]})", "c");
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().message.find("hush"), std::string::npos);
}

TEST(Load, reads_the_seeds_own_body) {
  const auto load = parse_load(R"({"model": "/models/Qwen3.8-Flash-Next-Q6", "batch": true})");
  ASSERT_TRUE(load) << load.error().message;
  EXPECT_EQ(load->model, "/models/Qwen3.8-Flash-Next-Q6");
  EXPECT_TRUE(load->batch);
  EXPECT_TRUE(load->wait);
}

TEST(Load, same_settings_do_not_depend_on_how_it_was_asked) {
  auto a = *parse_load(R"({"model":"/m","batch":true})");
  auto b = *parse_load(R"({"model":"/m","batch":true,"wait":false,"force":true})");
  EXPECT_TRUE(a.same_settings(b));
  b.batch_size = 4;
  EXPECT_FALSE(a.same_settings(b));
  EXPECT_TRUE(parse_load(to_json(b))->same_settings(b));
}

TEST(Load, speculates_where_it_is_asked_to) {
  EXPECT_EQ(parse_load(R"({"model":"/m"})")->speculate, "off");
  const auto ngram = parse_load(R"({"model":"/m","speculate":"ngram"})");
  ASSERT_TRUE(ngram) << ngram.error().message;
  EXPECT_EQ(parse_load(to_json(*ngram))->speculate, "ngram");
  EXPECT_FALSE(ngram->same_settings(*parse_load(R"({"model":"/m"})")));
  EXPECT_TRUE(parse_load(R"({"model":"/m","speculate":"off"})")
                  ->same_settings(*parse_load(R"({"model":"/m"})")));
}

TEST(Load, bad_bodies_are_refused_by_name) {
  const std::string no_word_of_a_command_line =
      R"({"model":"/m","chat_template":")" + std::string(128 << 10, 'x') + R"("})";
  for (const Bad& bad : {
           Bad{"{}", "model"},
           Bad{no_word_of_a_command_line, "at most 120000"},
           Bad{R"({"model":7})", "model"},
           Bad{R"({"model":"/m","batch":"yes"})", "batch"},
           Bad{R"({"model":"/m","batch_size":65})", "65"},
           Bad{R"({"model":"/m","kv_type":"f64"})", "f64"},
           Bad{R"({"model":"/m","draft_model":"/d"})", "draft_model"},
           Bad{R"({"model":"/m","speculate":"draft"})", "no draft models yet"},
           Bad{R"({"model":"/m","speculate":"always"})", "always"},
           Bad{R"({"model":"/m","bach":true})", "bach"},
           Bad{R"({"model":"/m","context":-1})", "-1"},
       }) {
    const auto load = parse_load(bad.body);
    ASSERT_FALSE(load) << bad.body;
    EXPECT_NE(load.error().message.find(bad.names), std::string::npos)
        << bad.body << " -> " << load.error().message;
  }
}

TEST(NodeShorthand, makes_local_and_http_nodes) {
  const auto local = parse_node_shorthand("local*2");
  ASSERT_TRUE(local);
  ASSERT_EQ(local->size(), 2U);
  EXPECT_EQ((*local)[1].id, "local-2");
  const auto http = parse_node_shorthand("gpu=http://10.0.0.5:8080/v1");
  ASSERT_TRUE(http);
  EXPECT_EQ(http->front().transport, "http");
  EXPECT_EQ(http->front().url, "http://10.0.0.5:8080/v1");
  for (const char* bad : {"", "*2", "a*0", "a*x", "a*99999", "a=ftp://x", "A"}) {
    EXPECT_FALSE(parse_node_shorthand(bad)) << bad;
  }
}

}  // namespace
}  // namespace flotilla::api
