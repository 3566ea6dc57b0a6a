#include "nodes/ssh_command.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "api/node_spec.h"

namespace flotilla::nodes {
namespace {

constexpr std::size_t kSocketMax = 107;

// For sh, whatever the login shell is (bash, zsh, fish, csh): it is one word in single quotes, and
// has none itself, nor a backslash or an exclamation mark. $1: the program's path, or -.
constexpr std::string_view kFindFlotilla =
    "p=$1; shift; "
    "PATH=$PATH:/opt/homebrew/bin:/usr/local/bin:$HOME/.local/bin; export PATH; "
    "if [ \"$p\" = - ]; then p=$(command -v flotilla) || "
    "{ echo \"flotilla: not found in $PATH\" >&2; exit 127; }; fi; "
    "exec \"$p\" \"$@\"";
constexpr std::string_view kHoldForward = "echo open; exec cat >/dev/null";

// What every shell takes as a word as it is.
bool is_plain_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._+-/:").find(c) != std::string_view::npos;
  });
}

bool is_socket_path(std::string_view text) {
  return text.starts_with('/') && text.size() <= kSocketMax && is_plain_word(text) &&
         text.find(':') == std::string_view::npos;
}

// Of an engine that the node's agent started.
bool is_own_address(std::string_view text) {
  constexpr std::string_view host = "127.0.0.1:";
  if (!text.starts_with(host)) return false;
  text.remove_prefix(host.size());
  return !text.empty() && text.size() <= 5 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string environment(const char* name, const char* standard) {
  const char* given = std::getenv(name);
  return given != nullptr && *given != '\0' ? given : standard;
}

Result<platform::Command> ssh_to(const SshTarget& target, std::vector<std::string> options) {
  if (!api::is_ssh_host(target.host))
    return fail(Code::InvalidArgument, fmt::format("\"{}\" is no host's name", target.host));
  if (!target.user.empty() && !api::is_ssh_user(target.user))
    return fail(Code::InvalidArgument, fmt::format("\"{}\" is no user's name", target.user));
  platform::Command command;
  command.program = environment("FLOTILLA_SSH", "ssh");
  command.arguments = {"-T"};
  if (std::string config = environment("FLOTILLA_SSH_CONFIG", ""); !config.empty()) {
    command.arguments.emplace_back("-F");
    command.arguments.push_back(std::move(config));
  }
  // A connection of its own, so that its death is one connection's death, and nothing of the
  // config that would run a program or open a port for it.
  for (const char* option :
       {"BatchMode=yes", "ExitOnForwardFailure=yes", "StreamLocalBindUnlink=yes",
        "ServerAliveInterval=5", "ServerAliveCountMax=3", "ConnectTimeout=10", "ControlMaster=no",
        "ControlPath=none", "RemoteCommand=none", "PermitLocalCommand=no", "ForwardAgent=no",
        "ForwardX11=no", "EscapeChar=none"}) {
    command.arguments.emplace_back("-o");
    command.arguments.emplace_back(option);
  }
  if (target.port != 0) {
    command.arguments.emplace_back("-p");
    command.arguments.push_back(fmt::format("{}", target.port));
  }
  if (!target.user.empty()) {
    command.arguments.emplace_back("-l");
    command.arguments.push_back(target.user);
  }
  std::ranges::move(options, std::back_inserter(command.arguments));
  command.arguments.emplace_back("--");
  command.arguments.push_back(target.host);
  return command;
}

// ssh joins its words with spaces for the node's login shell.
Result<void> add_script(platform::Command& command, std::string_view script,
                        const std::vector<std::string>& arguments) {
  if (script.find_first_of("'\\!\n") != std::string_view::npos)
    return fail(Code::Internal, "a script that not every shell takes");
  for (const std::string& argument : arguments)
    if (!is_plain_word(argument))
      return fail(Code::InvalidArgument,
                  fmt::format("\"{}\" cannot be passed to a node: it has characters that a shell "
                              "may read otherwise",
                              argument));
  command.arguments.emplace_back("sh");
  command.arguments.emplace_back("-c");
  command.arguments.push_back(fmt::format("'{}'", script));
  command.arguments.emplace_back("sh");
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  return {};
}

bool holds(const std::vector<std::string>& lines, std::string_view text) {
  return std::ranges::any_of(
      lines, [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

}  // namespace

std::string SshTarget::shown() const {
  std::string out = user.empty() ? host : user + "@" + host;
  if (port != 0) out += fmt::format(":{}", port);
  return out;
}

Result<platform::Command> ssh_script(const SshTarget& target, const std::string& script,
                                     const std::vector<std::string>& arguments) {
  auto command = ssh_to(target, {"-o", "ClearAllForwardings=yes"});
  if (!command) return command;
  if (auto added = add_script(*command, script, arguments); !added) return fail(added.error());
  return command;
}

Result<platform::Command> ssh_flotilla(const SshTarget& target,
                                       const std::vector<std::string>& arguments) {
  if (!target.flotilla_path.empty() && !api::is_program_path(target.flotilla_path))
    return fail(Code::InvalidArgument,
                fmt::format("\"{}\" is no program's path", target.flotilla_path));
  std::vector<std::string> words = {target.flotilla_path.empty() ? "-" : target.flotilla_path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return ssh_script(target, std::string(kFindFlotilla), words);
}

Result<platform::Command> ssh_forward(const SshTarget& target, const std::string& here,
                                      const std::string& there) {
  for (const std::string* path : {&here, &there})
    if (!is_socket_path(*path) && !(path == &there && is_own_address(there)))
      return fail(Code::InvalidArgument,
                  fmt::format("ssh cannot forward the socket \"{}\": its path must be absolute, at "
                              "most {} characters of a-z, A-Z, 0-9 and . _ + - /",
                              *path, kSocketMax));
  auto command = ssh_to(target, {"-L", fmt::format("{}:{}", here, there)});
  if (!command) return command;
  if (auto added = add_script(*command, kHoldForward, {}); !added) return fail(added.error());
  return command;
}

std::string forward_remedy(const SshTarget& target, const std::string& there) {
  const bool port = is_own_address(there);
  return fmt::format(
      "set {} in the sshd_config of {} (without DisableForwarding{}, and without "
      "no-port-forwarding "
      "for this key in authorized_keys) and reload sshd",
      port ? "AllowTcpForwarding yes" : "AllowStreamLocalForwarding yes", target.host,
      port ? ", with no PermitOpen or one of 127.0.0.1:*" : "");
}

Result<platform::Command> ssh_key_exchange(const SshTarget& target, const std::string& file) {
  if (!is_socket_path(file))
    return fail(Code::InvalidArgument, fmt::format("ssh cannot write to \"{}\"", file));
  return ssh_to(target,
                {"-o", "StrictHostKeyChecking=accept-new", "-o", "UserKnownHostsFile=" + file, "-o",
                 "GlobalKnownHostsFile=/dev/null", "-o", "HashKnownHosts=no", "-o",
                 "UpdateHostKeys=no", "-o", "PreferredAuthentications=none", "-N"});
}

Result<platform::Command> ssh_options_shown(const SshTarget& target) {
  return ssh_to(target, {"-G"});
}

std::string explain_ssh(const SshTarget& target, const std::string& node,
                        const std::vector<std::string>& lines) {
  const std::string where = target.shown();
  const std::string host = target.host;
  if (holds(lines, "IDENTIFICATION HAS CHANGED"))
    return fmt::format(
        "the host key of {} is another than the one known: it was installed anew, "
        "or something stands between. If that is right, run: flotilla node trust {}",
        host, node);
  if (holds(lines, "Host key verification failed") || holds(lines, "host key is known for"))
    return fmt::format("the host key of {} is not known yet; run: flotilla node trust {}", host,
                       node);
  // ssh's own names the ways to log in behind it; a program there that is denied a file does not.
  if (holds(lines, "Permission denied (") || holds(lines, "Too many authentication failures"))
    return fmt::format(
        "{} takes none of this user's keys; run: ssh-copy-id {}{}{}, or give the "
        "node another user",
        where, target.port != 0 ? fmt::format("-p {} ", target.port) : "",
        target.user.empty() ? "" : target.user + "@", host);
  if (holds(lines, "Could not resolve hostname"))
    return fmt::format("there is no host \"{}\"; correct the node's host", host);
  if (holds(lines, "Connection refused"))
    return fmt::format("no sshd answers at {}; turn on sshd there (macOS: Remote Login)", where);
  if (holds(lines, "timed out") || holds(lines, "No route to host") ||
      holds(lines, "Network is unreachable") || holds(lines, "not responding"))
    return fmt::format("{} does not answer: it is off, asleep or out of reach", where);
  if (holds(lines, "flotilla: not found") ||
      (!target.flotilla_path.empty() && holds(lines, target.flotilla_path) &&
       (holds(lines, "not found") || holds(lines, "No such file"))))
    return fmt::format(
        "flotilla is not installed there; run: flotilla node bootstrap {}, or set "
        "the node's flotilla_path",
        node);
  if (!target.flotilla_path.empty() && holds(lines, target.flotilla_path + ": Permission denied"))
    return fmt::format(
        "the node's flotilla_path is no program that its user may run; correct it, or run on that "
        "machine: chmod 755 {}",
        target.flotilla_path);
  if (holds(lines, "Exec format error") || holds(lines, "cannot execute"))
    return fmt::format(
        "the flotilla there cannot run on that machine; install one of its platform "
        "or set the node's flotilla_path");
  return {};
}

}  // namespace flotilla::nodes
