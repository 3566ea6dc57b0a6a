#include "api/declared.h"

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

TEST(DeclaredTest, reads_back_as_it_was_written_without_the_keys) {
  Declared declared;
  ClusterSpec cluster;
  cluster.id = "lab";
  cluster.label = "Lab";
  cluster.models_dir = "/m";
  cluster.reload_on_restart = false;
  NodeSpec gpu;
  gpu.id = gpu.label = "gpu";
  gpu.transport = "ssh";
  gpu.host = "big";
  gpu.flotilla_path = "/opt/flotilla";
  gpu.devices = {1, 2};
  gpu.env = {{"GGML_X", "1"}};
  NodeSpec far;
  far.id = far.label = "far";
  far.transport = "http";
  far.url = "http://far/v1";
  far.api_key = "sk-secret";
  cluster.nodes = {gpu, far};
  declared.clusters.push_back(cluster);
  DeclaredPool& pool = declared.pools.emplace_back();
  pool.cluster = "lab";
  pool.load.model = "a.gguf";
  pool.load.alias = "a";
  pool.load.context = 100;
  pool.load.aliases = {"b"};
  pool.load.share_prefixes = true;
  const std::string text = to_json(declared);
  EXPECT_EQ(text.find("sk-secret"), std::string::npos);
  const auto read = read_declared(text);
  ASSERT_TRUE(read) << read.error().message;
  declared.clusters[0].nodes[1].api_key.clear();
  EXPECT_EQ(read->clusters, declared.clusters);
  EXPECT_EQ(read->pools.at(0).cluster, "lab");
  EXPECT_TRUE(read->pools.at(0).load.same_settings(declared.pools.at(0).load));
  EXPECT_EQ(read->api_key_fingerprints.at("far"), api_key_fingerprint("far", "sk-secret"));
  EXPECT_NE(api_key_fingerprint("far", "sk-secret"), api_key_fingerprint("near", "sk-secret"));
}

TEST(DeclaredTest, what_it_does_not_know_is_an_error) {
  const auto read = read_declared(
      R"({"clusters":[],"pools":[{"cluster":"a","model":"m","warp":9}],"api_key_fingerprints":{}})");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("warp"), std::string::npos);
  EXPECT_FALSE(read_declared("{}"));
  EXPECT_FALSE(read_declared(R"({"clusters":{},"pools":[],"api_key_fingerprints":{}})"));
}

}  // namespace
}  // namespace flotilla::api
