#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "platform/process.h"

// Command lines of the user's own OpenSSH, with the user's own config and keys. No shell runs here;
// the one that sshd starts on the node gets fixed words of ours and arguments that can mean nothing
// to it: everything is checked again, whoever checked it before.
namespace flotilla::nodes {

struct SshTarget {
  std::string host = {};
  std::string user = {};           // empty = as the ssh config says
  int port = 0;                    // 0 = as the ssh config says
  std::string flotilla_path = {};  // on the node; empty = searched for

  std::string shown() const;  // user@host:port
  bool operator==(const SshTarget&) const = default;
};

// `flotilla ARGUMENTS` on the node: at flotilla_path, or found in PATH, /opt/homebrew/bin,
// /usr/local/bin or ~/.local/bin (the PATH of a Mac's non-interactive login lacks them).
Result<platform::Command> ssh_flotilla(const SshTarget& target,
                                       const std::vector<std::string>& arguments);
// Forwards a socket here to one there, or to an engine's 127.0.0.1:PORT. It prints "open" once the
// socket here accepts, and ends with its stdin: so none outlives a gateway, however that ended. (-N
// would.)
Result<platform::Command> ssh_forward(const SshTarget& target, const std::string& here,
                                      const std::string& there);
// What would do about an sshd that does not carry such a forward on.
std::string forward_remedy(const SshTarget& target, const std::string& there);
// A fixed script of ours on the node, for sh; `arguments` are its $1, $2 …
Result<platform::Command> ssh_script(const SshTarget& target, const std::string& script,
                                     const std::vector<std::string>& arguments);
// Meets the machine and goes no further: the host key that it shows is written to `file`.
Result<platform::Command> ssh_key_exchange(const SshTarget& target, const std::string& file);
// Prints the options that the user's config gives for the machine.
Result<platform::Command> ssh_options_shown(const SshTarget& target);

// What the last lines of an ssh that failed mean and what would do. `node`: whose link it is.
std::string explain_ssh(const SshTarget& target, const std::string& node,
                        const std::vector<std::string>& lines);

}  // namespace flotilla::nodes
