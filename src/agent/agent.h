#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace flotilla::agent {

struct AgentOptions {
  std::string state_id = {};            // of the gateway's state directory
  std::filesystem::path run_dir = {};   // lock, logs; made if it is missing
  std::chrono::seconds grace{0};        // how long runners outlive a gateway that just went away
  std::filesystem::path flotilla = {};  // the runners' program; empty = the running executable
  std::string version = {};
  // How the runners' end is bound to ours: Child is them and the link's end in one process; Pipe
  // leaves them to a process of its own, so that who started us need not wait for it; Holder is
  // that process, which has no gateway at its stdin.
  enum class Role { Child, Pipe, Holder };
  Role role = Role::Child;
};

// Speaks frames on stdin and stdout until the gateway is gone and its runners have ended; or, where
// another agent of the same gateway holds the run directory, is a pipe to that one. Returns the
// process's exit code. Takes over the process: signals, stdin, stdout.
int run_agent(const AgentOptions& options);

}  // namespace flotilla::agent
