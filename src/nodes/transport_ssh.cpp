#include "nodes/transport_ssh.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "nodes/ssh_forward.h"
#include "platform/process.h"
#include "platform/socket_dir.h"

namespace flotilla::nodes {
namespace {

// Counts all forwards of this process: the names of their sockets.
std::uint64_t next_number() {
  static std::uint64_t number = 0;
  return ++number;
}

class SshTransport final : public Transport {
 public:
  SshTransport(SshTransportOptions options, platform::Command agent)
      : options_(std::move(options)), agent_(std::move(agent)) {}

  platform::Command agent_command() const override { return agent_; }

  std::string remedy(const std::vector<std::string>& lines) const override {
    return explain_ssh(options_.target, options_.node, lines);
  }

  Result<std::string> open_socket(const std::string& replica, const std::string& socket) override {
    std::string here =
        options_.socket_dir / fmt::format("{}-{}.sock", platform::own_pid(), next_number());
    auto command = ssh_forward(options_.target, here, socket);
    if (!command) return fail(command.error());
    forwards_[replica] = std::make_unique<SshForward>(
        SshForward::Options{.executor = options_.executor,
                            .name = fmt::format("node {}: replica {}", options_.node, replica),
                            .command = std::move(*command),
                            .socket = here,
                            .remedy = forward_remedy(options_.target, socket),
                            .on_forbidden = [this, replica](std::string why) {
                              if (on_barred) on_barred(replica, std::move(why));
                            }});
    return here;
  }

  bool is_open(const std::string& replica) const override {
    const auto found = forwards_.find(replica);
    return found != forwards_.end() && found->second->is_open();
  }

  Task<void> wait_open(std::string replica, std::chrono::milliseconds limit) override {
    const auto found = forwards_.find(replica);
    if (found == forwards_.end()) co_return fail(Code::NotFound, "there is no forward for it");
    co_return co_await found->second->wait_open(limit);
  }

  void close_socket(const std::string& replica) override { forwards_.erase(replica); }
  void close_all_sockets() override { forwards_.clear(); }

 private:
  const SshTransportOptions options_;
  const platform::Command agent_;
  std::map<std::string, std::unique_ptr<SshForward>> forwards_;  // by replica
};

}  // namespace

Result<std::unique_ptr<Transport>> make_ssh_transport(SshTransportOptions options) {
  // The agent's own id of us: another link to the same machine, under another name, is refused by
  // the agent that holds it instead of taking it away from this one.
  auto agent = ssh_flotilla(options.target, {"agent", "--detach", "--state-id", options.state_id,
                                             "--grace", fmt::format("{}", options.grace_s)});
  if (!agent) return fail(agent.error());
  return std::make_unique<SshTransport>(std::move(options), std::move(*agent));
}

}  // namespace flotilla::nodes
