#include "gateway/machine.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/sha256.h"
#include "nodes/transport_local.h"
#include "nodes/transport_ssh.h"
#include "platform/machine.h"
#include "platform/socket_dir.h"

namespace flotilla::gateway {
namespace {

// The state id that its agent knows us by: another for each way to reach a machine, so that two
// ways to the same one are told apart and the second is refused.
std::string id_for(const std::string& state_id, const std::string& key) {
  const std::array<std::string_view, 1> parts{key};
  return state_id + "-" + hex_text(sha256(parts)).substr(0, 8);
}

Result<std::unique_ptr<nodes::Transport>> make_transport(const MachineOptions& options,
                                                         const api::NodeSpec& node) {
  const int grace_s = static_cast<int>(options.knobs->agent_grace.count());
  if (node.is_local()) {
    nodes::LocalTransportOptions local;
    local.state_id = options.state_id;
    local.run_dir = options.state_dir / "agent";
    local.grace_s = grace_s;
    local.env = options.knobs->for_runners;
    return nodes::make_local_transport(std::move(local));
  }
  const auto sockets = platform::make_socket_dir(options.state_dir / "ssh");
  if (!sockets) return fail(sockets.error());
  nodes::SshTransportOptions ssh{.executor = options.executor};
  ssh.target = ssh_target(node);
  ssh.node = node.id;
  ssh.state_id = id_for(options.state_id, machine_key(node));
  ssh.socket_dir = *sockets;
  ssh.grace_s = grace_s;
  return nodes::make_ssh_transport(std::move(ssh));
}

}  // namespace

nodes::SshTarget ssh_target(const api::NodeSpec& node) {
  return {
      .host = node.host, .user = node.user, .port = node.port, .flotilla_path = node.flotilla_path};
}

std::string machine_key(const api::NodeSpec& node) {
  if (!node.has_agent()) return {};
  if (node.is_local()) return "local";
  return fmt::format("ssh {} {}", ssh_target(node).shown(), node.flotilla_path);
}

Result<std::shared_ptr<Machine>> make_machine(const MachineOptions& options,
                                              const api::NodeSpec& node) {
  auto transport = make_transport(options, node);
  if (!transport) return fail(transport.error());
  auto machine = std::make_shared<Machine>();
  machine->key = machine_key(node);
  machine->name = node.is_local() ? "local" : node.id;
  machine->host = node.is_local() ? platform::host_name() : node.host;
  Machine* const it = machine.get();  // outlives its link
  nodes::NodeLink::Options link;
  link.executor = options.executor;
  link.clock = options.clock;
  link.seed = options.random->next();
  link.name = machine->name;
  link.transport = std::move(*transport);
  link.on_state = [it, tell = options.on_link](const nodes::LinkStatus& status) {
    tell(*it, status);
  };
  link.on_event = [it, tell = options.on_agent](const api::AgentEvent& event) { tell(*it, event); };
  machine->link = std::make_unique<nodes::NodeLink>(std::move(link));
  return machine;
}

}  // namespace flotilla::gateway
