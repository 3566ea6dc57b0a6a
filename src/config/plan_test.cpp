#include "config/plan.h"

#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/spec_tree.h"

namespace flotilla::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const char* no_environment(const char*) { return nullptr; }

const char* secret_environment(const char* name) {
  return std::string_view(name) == "FAR_KEY" ? "sk-secret" : nullptr;
}

Wanted wanted_of(std::string_view text) {
  auto wanted = read_wanted(text, "f.yaml", secret_environment);
  EXPECT_TRUE(wanted) << wanted.error().message;
  return wanted ? std::move(*wanted) : Wanted{};
}

std::string error_of(std::string_view text) {
  const auto wanted = read_wanted(text, "f.yaml", no_environment);
  EXPECT_FALSE(wanted) << text;
  return wanted ? std::string() : wanted.error().message;
}

constexpr std::string_view kFleet = R"(
clusters:
  - id: lab
    models_dir: /m
    nodes:
      - id: a
      - id: far
        transport: http
        url: http://far/v1
        api_key_env: FAR_KEY
  - {id: solo, nodes: [{id: s}]}
pools:
  - {cluster: lab, model: Big-7B.Q4_0.gguf, batch: true, context: 4096}
  - {cluster: solo, model: synthetic, alias: toy, aliases: [little], default: true}
keys:
  - {name: ann, weight: 2, models: [toy]}
settings:
  QUEUE_MAX: 100
)";

api::SettingShown setting(std::string name, double value, std::string source) {
  api::SettingShown out;
  out.name = std::move(name);
  out.value = value;
  out.min = 1;
  out.max = 1000;
  out.source = std::move(source);
  return out;
}

// What a server has after a file was applied to it.
There there_of(const Wanted& wanted) {
  There there;
  there.declared.clusters = wanted.clusters.value();
  for (const api::ClusterSpec& cluster : there.declared.clusters)
    for (const api::NodeSpec& node : cluster.nodes)
      if (!node.api_key.empty())
        there.declared.api_key_fingerprints[node.id] =
            api::api_key_fingerprint(node.id, node.api_key);
  there.declared.pools = wanted.pools.value();
  for (const api::KeySpec& key : wanted.keys.value())
    there.keys.push_back({.id = "key-" + key.name, .spec = key});
  there.settings = {setting("DRAIN_S", 5, "default"), setting("QUEUE_MAX", 100, "stored")};
  return there;
}

There empty_server() {
  There there;
  there.settings = {setting("DRAIN_S", 5, "default"), setting("QUEUE_MAX", 4, "default")};
  return there;
}

std::vector<std::string> lines(const Wanted& wanted, const There& there, bool prune = false) {
  const auto plan = make_plan(wanted, there, prune);
  EXPECT_TRUE(plan) << plan.error().message;
  std::vector<std::string> out;
  if (plan)
    for (const Step& step : plan->steps) out.push_back(step.line());
  return out;
}

TEST(PlanTest, an_empty_server_gets_it_all_in_an_order_that_works) {
  EXPECT_THAT(
      lines(wanted_of(kFleet), empty_server()),
      ElementsAre("add setting QUEUE_MAX (4 -> 100)", "add cluster lab (nodes: 2)",
                  "add cluster solo (nodes: 1)", "add pool big-7b (Big-7B.Q4_0.gguf on lab)",
                  "add pool toy (synthetic on solo)", "add key ann"));
}

TEST(PlanTest, a_second_time_there_is_nothing_to_do) {
  const Wanted wanted = wanted_of(kFleet);
  EXPECT_THAT(lines(wanted, there_of(wanted)), IsEmpty());
  EXPECT_THAT(lines(wanted, there_of(wanted), true), IsEmpty());
}

TEST(PlanTest, changes_are_named_field_by_field) {
  const There there = there_of(wanted_of(kFleet));
  std::string text(kFleet);
  const auto put = [&](std::string_view before, std::string_view after) {
    text.replace(text.find(before), before.size(), after);
  };
  put("models_dir: /m", "label: Lab");
  put("- id: a\n", "- id: b\n");
  put("http://far/v1", "http://far/v2");
  put("batch: true", "batch: false");
  put("alias: toy, aliases: [little]", "alias: toy, threads: 2");
  put("weight: 2", "max_in_flight: 3");
  put("QUEUE_MAX: 100", "QUEUE_MAX: 200");
  EXPECT_THAT(
      lines(wanted_of(text), there),
      ElementsAre(
          "change setting QUEUE_MAX (100 -> 200)",
          "change cluster lab (label: unset -> \"Lab\", nodes.b comes, nodes.far.url: "
          "\"http://far/v1\" -> \"http://far/v2\", nodes.a goes, models_dir: \"/m\" -> unset)",
          "change pool big-7b (batch: true -> false; reloads, no request fails)",
          "change pool toy (threads: unset -> 2, aliases: [\"little\"] -> unset; unloads and "
          "loads)",
          "change key ann (max_in_flight: unset -> 3, weight: 2 -> unset)"));
}

TEST(PlanTest, another_key_of_a_node_is_seen_and_not_shown) {
  There there = there_of(wanted_of(kFleet));
  there.declared.api_key_fingerprints["far"] = api::api_key_fingerprint("far", "sk-old");
  EXPECT_THAT(lines(wanted_of(kFleet), there),
              ElementsAre("change cluster lab (nodes.far: another api_key)"));
}

TEST(PlanTest, nothing_is_removed_without_prune_and_only_of_sections_that_are_there) {
  const There there = there_of(wanted_of(kFleet));
  const Wanted less = wanted_of("clusters: [{id: solo, nodes: [{id: s}]}]\npools: []\nkeys:\n");
  EXPECT_THAT(lines(less, there), IsEmpty());
  EXPECT_THAT(make_plan(less, there, false)->left,
              ElementsAre("pool big-7b", "pool toy", "cluster lab", "key ann"));
  EXPECT_THAT(lines(less, there, true), ElementsAre("remove pool big-7b", "remove pool toy",
                                                    "remove cluster lab", "remove key ann"));
  EXPECT_THAT(lines(wanted_of("settings: {}\n"), there, true),
              ElementsAre("remove setting QUEUE_MAX"));
  EXPECT_THAT(lines(Wanted{}, there, true), IsEmpty());
}

TEST(PlanTest, a_cluster_whose_pools_stay_stays) {
  const There there = there_of(wanted_of(kFleet));
  const auto plan = make_plan(wanted_of("clusters: [{id: new, nodes: [{id: n}]}]\n"), there, true);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->steps.size(), 1U);
  EXPECT_THAT(plan->left, ElementsAre(HasSubstr("cluster lab (it has pools"), HasSubstr("solo")));
}

TEST(PlanTest, what_no_step_could_do_is_an_error) {
  There there = there_of(wanted_of(kFleet));
  const auto message = [&](std::string_view text) {
    const auto plan = make_plan(wanted_of(text), there, false);
    EXPECT_FALSE(plan) << text;
    return plan ? std::string() : plan.error().message;
  };
  EXPECT_THAT(message("pools: [{cluster: lap, model: m}]"), HasSubstr("did you mean \"lab\"?"));
  EXPECT_THAT(message("settings: {QUEUE_MIX: 1}"),
              HasSubstr("f.yaml:1:12: the server has no setting \"QUEUE_MIX\"; did you mean"));
  EXPECT_THAT(message("settings: {QUEUE_MAX: 0}"), HasSubstr("from 1 to 1000"));
  there.settings[1].source = "flag";
  EXPECT_THAT(message("settings: {QUEUE_MAX: 5}"), HasSubstr("pinned to 100 by the server's flag"));
  EXPECT_THAT(lines(wanted_of("settings: {QUEUE_MAX: 100}"), there), IsEmpty());
}

TEST(WantedTest, mistakes_have_their_place) {
  EXPECT_THAT(error_of("clusters:\n  - id: a\n    nodes:\n      - id: x\n        prot: 1\n"),
              HasSubstr("f.yaml:5:9: nodes[0].prot is not a field here; did you mean \"port\"?"));
  EXPECT_THAT(error_of("pools:\n  - cluster: a\n    model: m\n    context: -1\n"),
              HasSubstr("f.yaml:4:5: context is -1"));
  EXPECT_THAT(error_of("keys:\n  - name: a\n  - name: a\n"), HasSubstr("f.yaml:3:5: key \"a\" is"));
  EXPECT_THAT(error_of("pool: []\n"), HasSubstr("f.yaml:1:1: there is no section \"pool\"; did you "
                                                "mean \"pools\"?"));
  EXPECT_THAT(error_of("settings:\n  A: many\n"), HasSubstr("f.yaml:2:6: A is \"many\""));
  EXPECT_THAT(error_of("pools: [{cluster: a, model: m, wait: true}]"), HasSubstr("--no-wait"));
  for (const char* wrong : {"", "- a", "clusters: a", "clusters: [a]", "clusters: [{nodes: []}]",
                            "pools: [{model: m}]", "keys: [{}]", "settings: [a]",
                            "pools: [{cluster: a, model: m}, {cluster: b, model: x/M.gguf}]"})
    EXPECT_THAT(error_of(wrong), HasSubstr("f.yaml:1:")) << wrong;
}

TEST(WantedTest, keys_of_nodes_come_from_outside_and_are_never_shown) {
  const auto file_of = [](std::string_view member) {
    return fmt::format(
        "clusters: [{{id: c, nodes: [{{id: n, transport: http, url: http://x, {}}}]}}]", member);
  };
  EXPECT_EQ(wanted_of(file_of("api_key_env: FAR_KEY")).clusters->at(0).nodes.at(0).api_key,
            "sk-secret");
  const std::string plain = error_of(file_of("api_key: sk-plain"));
  EXPECT_THAT(plain, HasSubstr("api_key_env"));
  EXPECT_EQ(plain.find("sk-plain"), std::string::npos);
  EXPECT_THAT(error_of(file_of("api_key_env: FAR_KEY")), HasSubstr("FAR_KEY is not set"));
  EXPECT_THAT(error_of(file_of("api_key_file: /no/such")), HasSubstr("/no/such"));
  const std::string key_file = testing::TempDir() + "/node-key";
  std::ofstream(key_file) << "sk-file\r\n";
  EXPECT_EQ(wanted_of(file_of("api_key_file: " + key_file)).clusters->at(0).nodes.at(0).api_key,
            "sk-file");
  // Where a key is not wanted it is not told either.
  const auto local = read_wanted("clusters: [{id: c, nodes: [{id: n, api_key_env: FAR_KEY}]}]",
                                 "f.yaml", secret_environment);
  ASSERT_FALSE(local);
  EXPECT_EQ(local.error().message.find("sk-secret"), std::string::npos);
}

TEST(ExportTest, applied_to_a_fresh_server_it_is_the_same_text) {
  const Wanted wanted = wanted_of(kFleet);
  const There there = there_of(wanted);
  const std::string text = export_text(there.declared, there.keys, there.settings);
  EXPECT_EQ(text.find("sk-secret"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("# Node far has such a key."));
  const Wanted again = wanted_of(text);
  EXPECT_THAT(lines(again, there), IsEmpty()) << text;
  There fresh = there_of(again);
  fresh.declared.api_key_fingerprints = there.declared.api_key_fingerprints;
  EXPECT_EQ(export_text(fresh.declared, fresh.keys, fresh.settings), text);
}

TEST(ExportTest, what_is_as_long_as_may_be_is_read_back) {
  api::NodeSpec node;
  node.id = node.label = "n";
  for (int i = 10; i < 74; ++i)
    node.env[fmt::format("GGML_{}{}", i, std::string(93, 'A'))] = std::string(4000, '"');
  api::ClusterSpec cluster;
  cluster.id = "c";
  cluster.label = std::string(200, ':');
  cluster.nodes = {std::move(node)};
  api::DeclaredPool pool;
  pool.cluster = "c";
  pool.load.model = std::string(4000, '#');
  pool.load.alias = "a";
  pool.load.chat_template = std::string(120'000, '\n');
  There there;
  there.declared.clusters = {std::move(cluster)};
  there.declared.pools = {std::move(pool)};
  const std::string text = export_text(there.declared, there.keys, there.settings);
  EXPECT_THAT(lines(wanted_of(text), there), IsEmpty());
}

// More than a file of settings may hold, in bytes and in values.
TEST(ExportTest, keys_by_the_thousands_are_read_back) {
  There there;
  for (int i = 0; i < 4000; ++i) {
    api::KeyShown& key = there.keys.emplace_back();
    key.id = fmt::format("key-{}", i);
    key.spec.name = fmt::format("name-{:04}", i);
    for (int model = 0; model < 10; ++model)
      key.spec.models.push_back(fmt::format("{}-{}", std::string(40, 'm'), model));
  }
  const std::string text = export_text(there.declared, there.keys, there.settings);
  ASSERT_GT(text.size(), kFileBytesMax);
  const auto again = read_wanted(text, "f.yaml", no_environment);
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(again->keys->size(), there.keys.size());
  EXPECT_EQ(again->keys->back().models, there.keys.back().spec.models);
}

TEST(ExportTest, a_file_beyond_its_own_limit_is_refused) {
  EXPECT_THAT(error_of("# " + std::string(kFleetLimits.bytes_max, 'x')),
              HasSubstr("more than the 67108864 bytes"));
}

TEST(ExportTest, nothing_but_what_differs_from_the_defaults_is_written) {
  EXPECT_EQ(to_yaml(tree_of(wanted_of("pools: [{cluster: c, model: /m.gguf}]").pools->at(0))),
            "cluster: c\nmodel: /m.gguf\nbatch: false\nalias: m\n");
  EXPECT_EQ(to_yaml(tree_of(wanted_of("keys: [{name: a}]").keys->at(0))), "name: a\n");
  EXPECT_EQ(to_yaml(tree_of(wanted_of("clusters: [{id: c, nodes: [{id: c-1}]}]").clusters->at(0))),
            "id: c\nnodes:\n  - id: c-1\n");
}

}  // namespace
}  // namespace flotilla::config
