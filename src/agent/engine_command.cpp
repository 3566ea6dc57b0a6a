#include "agent/engine_command.h"

#include <algorithm>

#include <boost/asio/ip/tcp.hpp>
#include <fmt/format.h>

#include "base/check.h"

namespace flotilla::agent {

Result<int> choose_port(Executor executor) {
  using boost::asio::ip::tcp;
  tcp::acceptor acceptor(executor);
  boost::system::error_code error;
  acceptor.open(tcp::v4(), error);
  if (!error) acceptor.bind({boost::asio::ip::address_v4::loopback(), 0}, error);
  const auto bound = error ? tcp::endpoint() : acceptor.local_endpoint(error);
  if (error) return fail(Code::Unavailable, fmt::format("no free port: {}", error.message()));
  return bound.port();
}

std::string address_of(int port) { return fmt::format("127.0.0.1:{}", port); }

Result<platform::Command> engine_command(const std::filesystem::path& flotilla,
                                         const api::RunnerSpec& spec,
                                         const std::filesystem::path& model, int port) {
  CHECK(spec.engine.has_value());
  const api::EngineSpec& engine = *spec.engine;
  platform::Command command;
  command.program = flotilla;
  command.working_dir = engine.cwd;
  command.arguments = {"agent", "--hold-engine", "--"};
  for (const std::string& word : engine.command)
    command.arguments.push_back(api::fill_place(word, model.string(), port));
  command.env = spec.env;
  for (const auto& [name, text] : engine.env)
    command.env[name] = api::fill_place(text, model.string(), port);
  const auto has_nul = [](const std::string& text) { return text.find('\0') != text.npos; };
  if (engine.command.empty() || std::ranges::any_of(command.arguments, has_nul))
    return fail(Code::InvalidArgument,
                fmt::format("engine {} cannot be started: its command is empty or holds a NUL byte",
                            engine.name));
  return command;
}

}  // namespace flotilla::agent
