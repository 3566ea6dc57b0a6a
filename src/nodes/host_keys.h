#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/task.h"
#include "nodes/ssh_command.h"

// The host key that a machine shows and the one that the user's known_hosts has, by the user's own
// ssh and ssh-keygen.
namespace flotilla::nodes {

struct HostKeys {
  std::string name;                       // as known_hosts knows the machine
  std::vector<std::string> fingerprints;  // "SHA256:… (ED25519)"
  std::string file;                       // the user's known_hosts
  bool known = false;                     // it is the stored one
  bool changed = false;                   // another one is stored
};

// `scratch`: a directory of ours.
Task<HostKeys> look_at_host_keys(Executor executor, SshTarget target,
                                 std::filesystem::path scratch);
// Stores what the machine shows, in place of what was stored, if it still is `fingerprint`
// ("SHA256:…"). Conflict: it shows another one.
Task<HostKeys> store_host_keys(Executor executor, SshTarget target, std::filesystem::path scratch,
                               std::string fingerprint);

}  // namespace flotilla::nodes
