#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "nodes/transport.h"

namespace flotilla::nodes {

struct LocalTransportOptions {
  std::filesystem::path flotilla = {};  // empty = the running executable
  std::string state_id = {};  // names the gateway's state directory; adoption is bound to it
  std::filesystem::path run_dir = {};  // the agent's: lock, runner logs
  int grace_s = 0;  // how long runners outlive a gateway that went without EndAgent
  std::map<std::string, std::string> env = {};  // knobs for the agent and its runners
};

// The agent as a child process of the gateway.
std::unique_ptr<Transport> make_local_transport(LocalTransportOptions options);

}  // namespace flotilla::nodes
