#include "api/inventory.h"

#include <gtest/gtest.h>

#include "api/json.h"

namespace flotilla::api {
namespace {

ModelFile file(std::string path, std::int64_t bytes) {
  return {.path = std::move(path), .bytes = bytes, .architecture = "llama"};
}

NodeModels node(std::string id, std::vector<ModelFile> models, std::string error = {}) {
  return {.node = std::move(id),
          .models_dir = "/models",
          .models = std::move(models),
          .truncated = false,
          .error = std::move(error)};
}

NodePreflight preflight(std::string id, std::int64_t need, std::int64_t free, int sharing = 1) {
  NodePreflight out;
  out.node = std::move(id);
  out.sharing = sharing;
  out.answer.model_present = true;
  out.answer.need_bytes = need;
  out.answer.free_bytes = free;
  out.answer.fits = need <= free;
  return out;
}

TEST(MergeModels, NamesTheNodesThatLackAFileAndThoseWhoseFileDiffers) {
  const auto merged = merge_models({node("a", {file("x.gguf", 10), file("y.gguf", 5)}),
                                    node("b", {file("x.gguf", 11)}), node("c", {}, "away")});
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_EQ(merged[0].nodes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(merged[0].differing, std::vector<std::string>{"b"});
  EXPECT_TRUE(merged[0].missing.empty());
  EXPECT_EQ(merged[1].missing, std::vector<std::string>{"b"});  // c is not known to lack it
}

TEST(MergeModels, ACommandReadsWhatTheServerSays) {
  const std::vector<ClusterModels> clusters{
      {.cluster = "c",
       .nodes = {node("a", {file("x.gguf", 10)}), node("b", {}), node("d", {}, "away")}}};
  const auto table = read_models(to_json(clusters));
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->clusters, std::vector<std::string>{"c"});
  ASSERT_EQ(table->rows.size(), 1U);
  const ModelRow& row = table->rows.front();
  EXPECT_EQ(row.cluster, "c");
  EXPECT_EQ(row.model.file.path, "x.gguf");
  EXPECT_EQ(row.model.file.bytes, 10);
  EXPECT_EQ(row.model.missing, std::vector<std::string>{"b"});
  ASSERT_EQ(table->troubles.size(), 1U);
  EXPECT_EQ(table->troubles.front().node, "d");
  EXPECT_EQ(table->troubles.front().error, "away");
  EXPECT_FALSE(read_models("[]"));
  EXPECT_FALSE(read_models(R"({"clusters":1})"));
}

TEST(Preflight, ReplicasOfOneMachineShareWhatIsFree) {
  EXPECT_TRUE(preflight("a", 40, 100, 2).fits());
  EXPECT_FALSE(preflight("a", 60, 100, 2).fits());
  EXPECT_EQ(preflight("a", 60, 100, 2).spare_bytes(), -20);
}

TEST(Preflight, TheReportNamesTheNodeThatLimits) {
  PreflightReport report{.cluster = "c", .model = "m", .batch = true, .width = 8, .nodes = {}};
  report.nodes = {preflight("roomy", 10, 100), preflight("tight", 90, 100)};
  auto read = json::parse_object(to_json(report));
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->at("fits").as_bool());
  EXPECT_EQ(read->at("limiting_node").as_string(), "tight");
  NodePreflight away = preflight("away", 0, 0);
  away.error = "the machine's agent is not connected";
  report.nodes.push_back(away);
  read = json::parse_object(to_json(report));
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->at("fits").as_bool());
  EXPECT_EQ(read->at("limiting_node").as_string(), "away");
}

TEST(Preflight, ACommandReadsWhatTheServerSays) {
  PreflightReport report{.cluster = "c", .model = "m", .batch = true, .width = 8, .nodes = {}};
  EXPECT_EQ(read_preflight(to_json(report))->limiting_node, "");
  report.nodes = {preflight("roomy", 10, 100), preflight("tight", 90, 100, 2)};
  report.nodes[1].fix = "take less";
  const auto rows = read_preflight(to_json(report));
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_FALSE(rows->fits);
  EXPECT_EQ(rows->limiting_node, "tight");
  ASSERT_EQ(rows->nodes.size(), 2U);
  EXPECT_TRUE(rows->nodes[0].fits);
  EXPECT_EQ(rows->nodes[1].replicas_here, 2);
  EXPECT_EQ(rows->nodes[1].need_bytes, 90);
  EXPECT_EQ(rows->nodes[1].fix, "take less");
  EXPECT_FALSE(read_preflight("[]"));
}

NodePreflight with_file(std::string id, std::int64_t bytes, std::string hash) {
  NodePreflight out = preflight(std::move(id), 10, 100);
  out.answer.model_bytes = bytes;
  out.answer.hash = std::move(hash);
  return out;
}

TEST(Preflight, TheFileThatMostNodesHaveIsTheRightOne) {
  std::vector<NodePreflight> nodes{with_file("a", 10, "x"), with_file("b", 10, "y"),
                                   with_file("c", 10, "y"), with_file("d", 11, ""),
                                   with_file("e", 10, "")};
  compare_nodes(nodes, "lab", "m.gguf");
  EXPECT_NE(nodes[0].differs.find("SHA-256 x"), std::string::npos) << nodes[0].differs;
  EXPECT_FALSE(nodes[0].fits());
  EXPECT_EQ(nodes[0].fix, "flotilla model sync lab m.gguf --node a: the file of node b");
  EXPECT_EQ(nodes[1].differs, "");
  EXPECT_NE(nodes[3].differs.find("11 bytes"), std::string::npos);
  EXPECT_EQ(nodes[4].differs, "");  // nothing says so
}

TEST(Preflight, EachRowThatFailsHasOneFix) {
  std::vector<NodePreflight> nodes{preflight("good", 10, 100), preflight("small", 200, 100),
                                   preflight("empty", 0, 100), preflight("old", 10, 100)};
  nodes[2].answer.model_present = false;
  nodes[2].answer.fits = false;
  nodes[3].outdated = true;
  compare_nodes(nodes, "lab", "m.gguf");
  EXPECT_EQ(nodes[0].fix, "");
  EXPECT_NE(nodes[1].fix.find("context"), std::string::npos);
  EXPECT_EQ(nodes[2].fix, "flotilla model sync lab m.gguf --node empty: the file of node good");
  EXPECT_EQ(nodes[3].fix, "flotilla node bootstrap old");
  EXPECT_TRUE(nodes[3].fits());
  compare_nodes(nodes, "lab", "my model's.gguf");
  EXPECT_EQ(nodes[2].fix,
            "flotilla model sync lab 'my model'\\''s.gguf' --node empty: the file of node good");
  compare_nodes(nodes, "lab", "-x.gguf");
  EXPECT_EQ(nodes[2].fix, "flotilla model sync lab ./-x.gguf --node empty: the file of node good");
  compare_nodes(nodes, "lab", "/models/m.gguf");
  EXPECT_EQ(nodes[2].fix, "copy /models/m.gguf there as it is on node good");
  nodes[0].answer.folder = true;  // which we do not copy
  compare_nodes(nodes, "lab", "weights");
  EXPECT_EQ(nodes[2].fix, "copy weights there as it is on node good");
  nodes[0].answer.folder = false;
  nodes[1].answer.metal_bytes = 100;
  compare_nodes(nodes, "lab", "m.gguf");
  EXPECT_NE(nodes[1].fix.find("iogpu.wired_limit_mb=1024"), std::string::npos) << nodes[1].fix;
}

TEST(Preflight, OnlyAModelThatIsMissingIsToBePutThere) {
  std::vector<NodePreflight> nodes{preflight("far", 0, 100)};
  nodes[0].answer.fits = false;
  nodes[0].answer.verdict = "context 99999999 must be between 0 and 16777216";
  compare_nodes(nodes, "lab", "m.gguf");
  EXPECT_EQ(nodes[0].fix, "change what was asked for, or take another file of the model");
  nodes[0].answer.model_present = false;
  compare_nodes(nodes, "lab", "m.gguf");
  EXPECT_EQ(nodes[0].fix, "put the model on every node, at the same path");
}

}  // namespace
}  // namespace flotilla::api
