#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "nodes/ssh_command.h"
#include "nodes/transport.h"

namespace flotilla::nodes {

struct SshTransportOptions {
  Executor executor;
  SshTarget target = {};
  std::string node = {};                  // whose link it is, for remedies
  std::string state_id = {};              // adoption is bound to it
  std::filesystem::path socket_dir = {};  // of the forwards' ends here: ours, mode 0700
  int grace_s = 0;                        // how long runners outlive the link
};

// The agent of another machine, through the user's OpenSSH: one ssh for its stdin and stdout and
// one for each replica's socket. InvalidArgument: a field that no ssh command line may have.
Result<std::unique_ptr<Transport>> make_ssh_transport(SshTransportOptions options);

}  // namespace flotilla::nodes
