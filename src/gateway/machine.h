#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "api/node_spec.h"
#include "base/clock.h"
#include "base/random.h"
#include "gateway/knobs.h"
#include "nodes/node_link.h"
#include "nodes/ssh_command.h"

namespace flotilla::gateway {

// Which machine a node is on, as it is reached: nodes with the same key share one link and one
// agent. Empty for an http node: it has no agent.
std::string machine_key(const api::NodeSpec& node);

nodes::SshTarget ssh_target(const api::NodeSpec& node);

// One machine's agent, what it said last, and what is there of ours. The Fleet's; I/O thread only.
struct Machine {
  std::string key;
  std::string name;  // of the node that it was first declared for
  std::string host;  // for people
  std::unique_ptr<nodes::NodeLink> link;
  api::AgentTelemetry telemetry;
  std::map<std::string, std::string> sockets;  // wire id -> socket
  // Runners that were loading when their gateway went away: what they were started for -> wire id.
  std::map<std::string, std::string> loading;
  bool leaving = false;  // no cluster names it any more

  bool is_local() const { return key == "local"; }
  bool is_up() const { return link->status().state == nodes::LinkState::Up; }
};

struct MachineOptions {
  Executor executor;
  const Clock* clock = nullptr;
  Random* random = nullptr;
  const Knobs* knobs = nullptr;
  std::filesystem::path state_dir;
  std::string state_id;
  std::function<void(Machine&, const nodes::LinkStatus&)> on_link;
  std::function<void(Machine&, const api::AgentEvent&)> on_agent;
};
// A node with an agent. The link is not started yet.
Result<std::shared_ptr<Machine>> make_machine(const MachineOptions& options,
                                              const api::NodeSpec& node);

}  // namespace flotilla::gateway
