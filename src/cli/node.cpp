#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/server_access.h"
#include "cli/terminal.h"
#include "client/admin_client.h"

namespace flotilla::cli {
namespace {

struct NodeFlags {
  ServerAccess access;
  std::string node;
  std::string cluster;
  std::string fingerprint;
  bool yes = false;
};

// The fingerprint that the user says yes to; empty: none.
std::string ask_which(const NodeFlags& flags, const api::TrustAnswer& shown) {
  if (!flags.fingerprint.empty()) return flags.fingerprint;
  const std::string first = shown.fingerprints.front();
  std::string fingerprint = first.substr(0, first.find(' '));
  if (flags.yes) return fingerprint;
  if (::isatty(STDIN_FILENO) == 0) return {};
  fmt::print("Store it in {}? [y/N] ", shown.file);
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes" ? fingerprint : std::string();
}

int trust(const NodeFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const auto shown =
      wait_for<api::TrustAnswer>((*admin)->io(), (*admin)->client().trust_node(flags.node, {}));
  if (!shown) return tell_error(shown.error());
  for (const std::string& fingerprint : shown->fingerprints)
    fmt::print("{} ({}) shows {}\n", shown->node, shown->host, fingerprint);
  if (shown->known) {
    fmt::print("that is the one in {}\n", shown->file);
    return 0;
  }
  if (shown->changed) fmt::print("{} has another one for it\n", shown->file);
  const std::string fingerprint = shown->fingerprints.empty() ? "" : ask_which(flags, *shown);
  if (fingerprint.empty()) {
    fmt::print(
        "nothing was stored; compare it with what `ssh-keygen -lf "
        "/etc/ssh/ssh_host_ed25519_key.pub` says on that machine, then add --yes\n");
    return 1;
  }
  const auto stored = wait_for<api::TrustAnswer>(
      (*admin)->io(), (*admin)->client().trust_node(flags.node, fingerprint));
  if (!stored) return tell_error(stored.error());
  fmt::print("stored in {}\n", stored->file);
  return 0;
}

int bootstrap_one(Admin& admin, const std::string& node) {
  const auto done = wait_for<api::BootstrapAnswer>(admin.io(), admin.client().bootstrap_node(node));
  if (!done) return tell_error(done.error());
  fmt::print("{}: flotilla {} ({}) at {}{}{}\n", done->node, printable(done->version),
             printable(done->platform), printable(done->path),
             done->restarted ? ", agent restarted" : "",
             done->up ? ", up" : ", its link is not up yet: flotilla status");
  std::fflush(stdout);
  return done->up ? 0 : 1;
}

// One node after the other, so that the others serve meanwhile; the first that fails ends it.
int bootstrap(const NodeFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  if (flags.cluster.empty()) return bootstrap_one(**admin, flags.node);
  const auto clusters =
      wait_for<std::vector<api::ClusterSpec>>((*admin)->io(), (*admin)->client().clusters());
  if (!clusters) return tell_error(clusters.error());
  for (const api::ClusterSpec& cluster : *clusters) {
    if (cluster.id != flags.cluster) continue;
    std::vector<std::string> machines;
    for (const api::NodeSpec& node : cluster.nodes) {
      const std::string machine = fmt::format("{}@{}:{}", node.user, node.host, node.port);
      if (node.transport != "ssh" || std::ranges::find(machines, machine) != machines.end())
        continue;
      machines.push_back(machine);
      if (const int failed = bootstrap_one(**admin, node.id); failed != 0) return failed;
    }
    if (machines.empty()) fmt::print("cluster {} has no node on another machine\n", cluster.id);
    return 0;
  }
  return tell_error({.code = Code::NotFound,
                     .message = fmt::format("there is no cluster \"{}\"", flags.cluster)});
}

}  // namespace

void add_node_command(const App& app, CommandResult& result) {
  auto flags = std::make_shared<NodeFlags>();
  const auto command =
      app.add_subcommand("node", "Trusts a machine's host key, installs flotilla there");
  command.require_subcommand();

  const auto trusted = command.add_subcommand(
      "trust",
      "Shows the host key of a node's machine and, once you say so, stores it where ssh looks.\n\n"
      "Example:\n  flotilla node trust mini-a");
  trusted.add_option("node", flags->node, "The node's id").required();
  trusted.add_flag("--yes", flags->yes, "Stores what is shown without asking");
  trusted.add_option("--fingerprint", flags->fingerprint, "Stores it if it is this one: SHA256:…");
  add_server_flags(trusted, flags->access);
  trusted.callback([flags, &result] { result.exit_code = trust(*flags); });

  const auto installed =
      command.add_subcommand("bootstrap",
                             "Drains a node, copies the server's flotilla to its "
                             "machine, starts its agent anew and waits\n"
                             "until its replicas are back.\n\n"
                             "Examples:\n"
                             "  flotilla node bootstrap mini-a\n"
                             "  flotilla node bootstrap --rolling lab");
  const auto node = installed.add_option("node", flags->node, "The node's id");
  const auto rolling = installed.add_option("--rolling", flags->cluster,
                                            "Every machine of this cluster, one after the other");
  node.excludes(rolling);
  add_server_flags(installed, flags->access);
  installed.callback([flags, &result] {
    if (flags->node.empty() && flags->cluster.empty()) {
      fmt::print(stderr, "flotilla: name a node, or a cluster with --rolling\n");
      result.exit_code = 2;
      return;
    }
    result.exit_code = bootstrap(*flags);
  });
}

}  // namespace flotilla::cli
