#include "nodes/ssh_command.h"

#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

namespace flotilla::nodes {
namespace {

using Words = std::vector<std::string>;

bool follows(const Words& words, const std::string& first, const std::string& second) {
  const auto at = std::ranges::adjacent_find(
      words, [&](const auto& a, const auto& b) { return a == first && b == second; });
  return at != words.end();
}

TEST(SshCommand, AsksForNoPasswordAndNoticesADeadLink) {
  const auto command = ssh_flotilla({.host = "mini-a", .user = "ann", .port = 2222}, {"agent"});
  ASSERT_TRUE(command);
  EXPECT_EQ(command->program, "ssh");
  for (const char* option :
       {"BatchMode=yes", "ExitOnForwardFailure=yes", "StreamLocalBindUnlink=yes",
        "ServerAliveInterval=5", "ServerAliveCountMax=3", "ConnectTimeout=10"})
    EXPECT_TRUE(follows(command->arguments, "-o", option)) << option;
  EXPECT_TRUE(follows(command->arguments, "-p", "2222"));
  EXPECT_TRUE(follows(command->arguments, "-l", "ann"));
  EXPECT_TRUE(follows(command->arguments, "--", "mini-a"));
  EXPECT_EQ(command->arguments.back(), "agent");
}

TEST(SshCommand, TheScriptIsOneWordForEveryShell) {
  const auto command = ssh_flotilla({.host = "h"}, {"agent", "--grace", "60"});
  ASSERT_TRUE(command);
  const auto script = std::ranges::find(command->arguments, "-c") + 1;
  EXPECT_TRUE(script->starts_with('\'') && script->ends_with('\''));
  EXPECT_EQ(script->substr(1, script->size() - 2).find_first_of("'\\!\n"), std::string::npos);
  EXPECT_EQ(Words(script + 1, command->arguments.end()),
            (Words{"sh", "-", "agent", "--grace", "60"}));
  EXPECT_TRUE(follows(ssh_flotilla({.host = "h", .flotilla_path = "/opt/f"}, {"x"})->arguments,
                      "/opt/f", "x"));
}

TEST(SshCommand, WhatAShellOrSshCouldReadOtherwiseIsRefused) {
  for (const char* host :
       {"", "-oProxyCommand=x", "a b", "a;b", "a\nb", "$(x)", "u@h", "a'b", "%h"})
    EXPECT_FALSE(ssh_flotilla({.host = host}, {"agent"})) << host;
  for (const char* user : {"-l", "a b", "a@b", "`x`", "a\n"})
    EXPECT_FALSE(ssh_flotilla({.host = "h", .user = user}, {"agent"})) << user;
  for (const char* path : {"flotilla", "/a b", "/a;b", "/", "/a/", "~/f", "/a'b"})
    EXPECT_FALSE(ssh_flotilla({.host = "h", .flotilla_path = path}, {"agent"})) << path;
  for (const char* word : {"", "a b", "$HOME", "'", "*", "~", "a\n", "a;b", "=ls"})
    EXPECT_FALSE(ssh_flotilla({.host = "h"}, {word})) << word;
}

TEST(SshCommand, AForwardNamesBothSockets) {
  const auto command = ssh_forward({.host = "h"}, "/run/f/1.sock", "/tmp/g/2.sock");
  ASSERT_TRUE(command);
  EXPECT_TRUE(follows(command->arguments, "-L", "/run/f/1.sock:/tmp/g/2.sock"));
  for (const char* path : {"", "relative", "/a:b", "/a b", "/%h", "/$HOME", "/a\n"}) {
    EXPECT_FALSE(ssh_forward({.host = "h"}, "/run/a", path)) << path;
    EXPECT_FALSE(ssh_forward({.host = "h"}, path, "/run/a")) << path;
  }
  EXPECT_FALSE(ssh_forward({.host = "h"}, "/" + std::string(200, 'a'), "/run/a"));
}

TEST(SshCommand, AForwardReachesAnEngineOfThatMachineAndNoOtherAddress) {
  EXPECT_TRUE(ssh_forward({.host = "h"}, "/run/f/1.sock", "127.0.0.1:8080"));
  for (const char* there : {"127.0.0.1:", "127.0.0.1:80a", "10.0.0.1:80", "127.0.0.1:123456"})
    EXPECT_FALSE(ssh_forward({.host = "h"}, "/run/f/1.sock", there)) << there;
  EXPECT_FALSE(ssh_forward({.host = "h"}, "127.0.0.1:8080", "/tmp/g/2.sock"));
}

TEST(SshCommand, AnSshdThatForwardsNothingIsToldWhichOfItsSettingsDoes) {
  const std::string socket = forward_remedy({.host = "box"}, "/tmp/g/2.sock");
  EXPECT_NE(socket.find("AllowStreamLocalForwarding yes in the sshd_config of box"),
            std::string::npos)
      << socket;
  EXPECT_EQ(socket.find("PermitOpen"), std::string::npos) << "it is of ports alone: " << socket;
  const std::string port = forward_remedy({.host = "box"}, "127.0.0.1:8080");
  EXPECT_NE(port.find("AllowTcpForwarding yes"), std::string::npos) << port;
  EXPECT_NE(port.find("PermitOpen"), std::string::npos) << port;
}

TEST(SshCommand, ErrorsComeWithWhatWouldDo) {
  const SshTarget target{.host = "box", .user = "ann", .port = 22, .flotilla_path = {}};
  const std::pair<const char*, const char*> cases[] = {
      {"@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @", "flotilla node trust n1"},
      {"Host key verification failed.", "flotilla node trust n1"},
      {"ann@box: Permission denied (publickey).", "ssh-copy-id -p 22 ann@box"},
      {"ssh: Could not resolve hostname box: Name or service not known", "no host \"box\""},
      {"ssh: connect to host box port 22: Connection refused", "no sshd answers"},
      {"ssh: connect to host box port 22: Connection timed out", "does not answer"},
      {"flotilla: not found in /usr/bin:/bin", "flotilla node bootstrap n1"},
      {"sh: 1: exec: /usr/bin/flotilla: Exec format error", "platform"},
  };
  for (const auto& [line, words] : cases)
    EXPECT_NE(explain_ssh(target, "n1", {"first", line, "last"}).find(words), std::string::npos)
        << line << " -> " << explain_ssh(target, "n1", {line});
  EXPECT_EQ(explain_ssh(target, "n1", {"something else"}), "");
  const SshTarget at{.host = "box", .user = {}, .port = 0, .flotilla_path = "/opt/f"};
  EXPECT_NE(explain_ssh(at, "n1", {"sh: 1: exec: /opt/f: not found"}).find("not installed"),
            std::string::npos);
  EXPECT_NE(explain_ssh(at, "n1", {"sh: 1: exec: /opt/f: Permission denied"}).find("chmod 755"),
            std::string::npos);
  EXPECT_EQ(explain_ssh(at, "n1", {"/var/flotilla cannot be made: Permission denied"}), "")
      << "a program of the machine said it, and it is no matter of keys";
}

}  // namespace
}  // namespace flotilla::nodes
