#include <memory>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/server_access.h"
#include "cli/terminal.h"
#include "client/admin_client.h"

namespace flotilla::cli {
namespace {

struct ClusterFlags {
  ServerAccess access;
  std::string cluster;
  std::vector<std::string> nodes;
  std::string label;
  std::string models_dir;
  std::string model_on_nodes;
};

std::string where_of(const api::NodeSpec& node) {
  if (node.transport == "http") return node.url;
  if (node.is_local()) return "this machine";
  std::string where = node.user.empty() ? node.host : node.user + "@" + node.host;
  if (node.port != 0) where += fmt::format(":{}", node.port);
  return where;
}

Result<api::ClusterSpec> cluster_of(const ClusterFlags& flags) {
  api::ClusterSpec cluster;
  cluster.id = flags.cluster;
  cluster.label = flags.label.empty() ? flags.cluster : flags.label;
  cluster.models_dir = flags.models_dir;
  for (const std::string& text : flags.nodes) {
    auto nodes = api::parse_node_shorthand(text);
    if (!nodes) return fail(nodes.error());
    for (api::NodeSpec& node : *nodes) {
      if (node.transport == "http") node.upstream_model = flags.model_on_nodes;
      cluster.nodes.push_back(std::move(node));
    }
  }
  return cluster;
}

int add(const ClusterFlags& flags) {
  const auto cluster = cluster_of(flags);
  if (!cluster) return tell_error(cluster.error());
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const auto done = wait_for<void>((*admin)->io(), (*admin)->client().put_cluster(*cluster));
  if (!done) return tell_error(done.error());
  fmt::print("cluster {}: {} node{}\n", cluster->id, cluster->nodes.size(),
             cluster->nodes.size() == 1 ? "" : "s");
  return 0;
}

int list(const ClusterFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const auto clusters =
      wait_for<std::vector<api::ClusterSpec>>((*admin)->io(), (*admin)->client().clusters());
  if (!clusters) return tell_error(clusters.error());
  if (clusters->empty()) {
    fmt::print("no clusters; add one with: flotilla cluster add NAME --node NAME*COUNT\n");
    return 0;
  }
  std::vector<std::vector<std::string>> rows{{"CLUSTER", "NODE", "TRANSPORT", "WHERE"}};
  for (const api::ClusterSpec& cluster : *clusters) {
    for (const api::NodeSpec& node : cluster.nodes) {
      rows.push_back({cluster.id, node.id, node.transport, where_of(node)});
    }
  }
  fmt::print("{}", table(rows));
  return 0;
}

int remove_cluster(const ClusterFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const auto done =
      wait_for<void>((*admin)->io(), (*admin)->client().remove_cluster(flags.cluster));
  if (!done) return tell_error(done.error());
  fmt::print("cluster {}: removed\n", flags.cluster);
  return 0;
}

}  // namespace

void add_cluster_command(const App& app, CommandResult& result) {
  auto flags = std::make_shared<ClusterFlags>();
  const auto cluster =
      app.add_subcommand("cluster", "Adds, lists and removes clusters of a running server");
  cluster.require_subcommand();

  const auto added = cluster.add_subcommand(
      "add",
      "Declares a cluster, or changes it: the nodes given are then its nodes.\n\n"
      "Examples:\n"
      "  flotilla cluster add local --node local*2\n"
      "  flotilla cluster add macs --node mini-a=mini-a.lan --node mini-b=ann@10.0.0.7\n"
      "  flotilla cluster add gpu --node big1*4=big1\n"
      "  flotilla cluster add lab --node big=http://127.0.0.1:8080/v1 --node small");
  added.add_option("cluster", flags->cluster, "Its id: a-z, 0-9 and -").required();
  added
      .add_option(
          "--node", flags->nodes,
          "NAME: a replica on this machine; NAME*COUNT: that many; NAME=[USER@]HOST[:PORT]: one "
          "on another machine, by ssh; NAME*COUNT=HOST: one for each of its devices; NAME=URL: a "
          "server that speaks OpenAI's API")
      .required();
  added.add_option("--label", flags->label, "Name for people");
  added.add_option("--models-dir", flags->models_dir, "Where relative model paths begin");
  added.add_option("--upstream-model", flags->model_on_nodes,
                   "Model name that NAME=URL nodes are asked for (default: the first they list)");
  add_server_flags(added, flags->access);
  added.callback([flags, &result] { result.exit_code = add(*flags); });

  const auto listed = cluster.add_subcommand(
      "list", "Prints the clusters and their nodes.\n\nExample:\n  flotilla cluster list");
  add_server_flags(listed, flags->access);
  listed.callback([flags, &result] { result.exit_code = list(*flags); });

  const auto removed = cluster.add_subcommand(
      "remove",
      "Unloads a cluster's pools and forgets it.\n\nExample:\n  flotilla cluster remove lab");
  removed.add_option("cluster", flags->cluster, "Its id").required();
  add_server_flags(removed, flags->access);
  removed.callback([flags, &result] { result.exit_code = remove_cluster(*flags); });
}

}  // namespace flotilla::cli
