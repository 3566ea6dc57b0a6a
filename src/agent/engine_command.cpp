#include "agent/engine_command.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <tuple>
#include <variant>
#include <vector>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "agent/runner_command.h"
#include "api/engine_template.h"
#include "base/check.h"

namespace flotilla::agent {
namespace {

using namespace boost::asio::experimental::awaitable_operators;
using boost::asio::ip::address_v4;
using boost::asio::ip::tcp;

constexpr std::chrono::seconds kConnect{2};  // of this machine: a full backlog is silent

// Scripts have lines; what is the name of a thing has none.
Result<void> check_engine(const api::EngineSpec& engine, const platform::Command& command) {
  const auto has_nul = [](const std::string& text) { return text.find('\0') != text.npos; };
  const auto variable_has_nul = [&](const auto& variable) {
    return has_nul(variable.first) || has_nul(variable.second);
  };
  const char* wrong = nullptr;
  if (engine.command.empty()) {
    wrong = "its command is empty";
  } else if (api::has_control_characters(engine.command.front())) {
    wrong = "its program has control characters";
  } else if (api::has_control_characters(engine.cwd)) {
    wrong = "its cwd has control characters";
  } else if (std::ranges::any_of(command.arguments, has_nul) ||
             std::ranges::any_of(command.env, variable_has_nul)) {
    wrong = "its command or env holds a NUL byte";
  }
  if (wrong == nullptr) return {};
  return fail(Code::InvalidArgument,
              fmt::format("engine {} cannot be started: {}", engine.name, wrong));
}

}  // namespace

Result<int> choose_port(Executor executor, const std::set<int>& given) {
  std::vector<tcp::acceptor> had;  // kept, so that the next is another
  for (;;) {
    tcp::acceptor& acceptor = had.emplace_back(executor);
    boost::system::error_code error;
    acceptor.open(tcp::v4(), error);
    if (!error) acceptor.bind({address_v4::loopback(), 0}, error);
    const auto bound = error ? tcp::endpoint() : acceptor.local_endpoint(error);
    if (error) return fail(Code::Unavailable, fmt::format("no free port: {}", error.message()));
    if (!given.contains(bound.port())) return bound.port();
  }
}

Awaitable<bool> is_listened_at(Executor executor, int port) {
  tcp::socket socket(executor);
  boost::asio::steady_timer limit(executor, kConnect);
  const tcp::endpoint there(address_v4::loopback(), static_cast<std::uint16_t>(port));
  const auto first = co_await (socket.async_connect(there, kAwait) || limit.async_wait(kAwait));
  const auto* connected = std::get_if<0>(&first);
  if (connected == nullptr || std::get<0>(*connected)) co_return false;
  boost::system::error_code error;
  co_return socket.local_endpoint(error) != there;  // it may have got that port, and met itself
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
  order_devices(command.env);
  if (auto may = check_engine(engine, command); !may) return fail(may.error());
  return command;
}

}  // namespace flotilla::agent
