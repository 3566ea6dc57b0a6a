#include "nodes/transport_local.h"

#include <utility>

#include <fmt/format.h>

namespace flotilla::nodes {
namespace {

class LocalTransport final : public Transport {
 public:
  explicit LocalTransport(LocalTransportOptions options) : options_(std::move(options)) {}

  platform::Command agent_command() const override {
    platform::Command command;
    command.program = options_.flotilla.empty() ? platform::executable_path() : options_.flotilla;
    command.arguments = {"agent",
                         "--state-id",
                         options_.state_id,
                         "--run-dir",
                         options_.run_dir,
                         "--grace",
                         fmt::format("{}", options_.grace_s)};
    command.env = options_.env;
    return command;
  }

  Result<std::string> open_socket(const std::string&, const std::string& socket) override {
    return socket;
  }
  void close_socket(const std::string&) override {}

 private:
  const LocalTransportOptions options_;
};

}  // namespace

std::unique_ptr<Transport> make_local_transport(LocalTransportOptions options) {
  return std::make_unique<LocalTransport>(std::move(options));
}

}  // namespace flotilla::nodes
