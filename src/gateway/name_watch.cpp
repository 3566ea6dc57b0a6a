#include "gateway/name_watch.h"

#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"
#include "http/client.h"

namespace flotilla::gateway {
namespace {

using boost::asio::ip::tcp;

constexpr std::chrono::seconds kLookEvery{5};
constexpr std::chrono::seconds kSettle{5};
constexpr std::chrono::milliseconds kLookAgain{20};
constexpr std::size_t kAddressesMax = 1024;

std::string id_of(const std::string& node, std::string address) {
  for (char& c : address)
    if (c == '.' || c == ':' || c == '%') c = '-';
  return fmt::format("{}-{}", node, address);
}

std::vector<std::string> of_one_family(const tcp::resolver::results_type& found) {
  std::set<boost::asio::ip::address> v4;
  std::set<boost::asio::ip::address> v6;
  for (const auto& entry : found) {
    const auto address = entry.endpoint().address();
    (address.is_v4() ? v4 : v6).insert(address);
  }
  std::vector<std::string> out;
  for (const auto& address : v4.empty() ? v6 : v4) {
    if (out.size() == kAddressesMax) break;
    out.push_back(address.to_string());
  }
  return out;
}

}  // namespace

std::string name_in_url(const api::NodeSpec& node) {
  if (node.has_agent()) return {};
  const auto endpoint = http::parse_url(node.url);
  if (!endpoint) return {};
  boost::system::error_code no_address;
  boost::asio::ip::make_address(endpoint->host, no_address);
  const bool here = endpoint->host == "localhost" || endpoint->host.ends_with(".localhost");
  return no_address && !here ? endpoint->host : std::string();
}

std::vector<api::NodeSpec> expand_nodes(
    const std::vector<api::NodeSpec>& nodes,
    const std::function<std::vector<std::string>(const std::string&)>& addresses) {
  std::vector<api::NodeSpec> out;
  for (const api::NodeSpec& node : nodes) {
    const std::string name = name_in_url(node);
    const auto found = name.empty() ? std::vector<std::string>() : addresses(name);
    if (found.empty()) out.push_back(node);
    for (const std::string& address : found) {
      api::NodeSpec one = node;
      one.id = id_of(node.id, address);
      one.label = fmt::format("{} {}", node.label, address);
      one.address = address;
      // Somebody may have named a node of their own so.
      if (std::ranges::find(nodes, one.id, &api::NodeSpec::id) == nodes.end())
        out.push_back(std::move(one));
    }
  }
  return out;
}

// Shared with the coroutine, so that each may end last.
struct NameWatch::State : std::enable_shared_from_this<NameWatch::State> {
  State(const Executor& on, std::function<void()> tell)
      : executor(on), changed(std::move(tell)), pause(on), resolver(on) {}

  struct Name {
    bool looked = false;
    bool several = false;
    std::vector<std::string> addresses;
  };

  Awaitable<void> run();
  Awaitable<bool> look(std::string name);

  Executor executor;
  std::function<void()> changed;
  boost::asio::steady_timer pause;  // cancelled when there are names to look up at once
  tcp::resolver resolver;
  std::map<std::string, Name> names;
  bool running = false;
  bool closed = false;
};

// Whether it has other addresses than before.
Awaitable<bool> NameWatch::State::look(std::string name) {
  const auto [error, found] =
      co_await resolver.async_resolve(name, "0", tcp::resolver::numeric_service, kAwait);
  const auto known = names.find(name);
  if (known == names.end()) co_return false;
  const bool first = !std::exchange(known->second.looked, true);
  if (error) {
    if (first) log::warning("{}: {}", name, error.message());
    co_return false;
  }
  auto now = of_one_family(found);
  if (now.empty() || now == known->second.addresses) co_return false;
  known->second.several = known->second.several || now.size() > 1;
  if (known->second.several) log::info("{} is {}", name, fmt::join(now, ", "));
  known->second.addresses = std::move(now);
  co_return known->second.several;
}

Awaitable<void> NameWatch::State::run() {
  const auto self = shared_from_this();
  while (!closed && !names.empty()) {
    std::vector<std::string> all;
    for (const auto& [name, known] : names) all.push_back(name);
    bool other = false;
    for (const std::string& name : all) {
      const bool moved = co_await look(name);
      other = other || moved;
    }
    if (closed) break;
    if (other) changed();
    const bool some_new =
        std::ranges::any_of(names, [](const auto& entry) { return !entry.second.looked; });
    if (some_new) continue;
    pause.expires_after(kLookEvery);
    co_await pause.async_wait(kAwait);
  }
  running = false;
}

NameWatch::NameWatch(Executor executor, std::function<void()> changed)
    : state_(std::make_shared<State>(executor, std::move(changed))) {}

NameWatch::~NameWatch() {
  state_->closed = true;
  state_->pause.cancel();
  state_->resolver.cancel();
}

void NameWatch::declare(std::set<std::string> names) {
  std::erase_if(state_->names, [&](const auto& entry) { return !names.contains(entry.first); });
  bool some_new = false;
  for (const std::string& name : names)
    some_new = state_->names.try_emplace(name).second || some_new;
  if (state_->names.empty() || state_->closed) return;
  if (some_new) state_->pause.cancel();
  if (!std::exchange(state_->running, true))
    boost::asio::co_spawn(state_->executor, state_->run(), boost::asio::detached);
}

Awaitable<void> NameWatch::settle() {
  const auto state = state_;
  boost::asio::steady_timer timer(state->executor);
  for (auto left = kSettle / kLookAgain; left > 0 && !state->closed; --left) {
    if (std::ranges::all_of(state->names, [](const auto& one) { return one.second.looked; })) break;
    timer.expires_after(kLookAgain);
    co_await timer.async_wait(kAwait);
  }
}

std::vector<std::string> NameWatch::addresses(const std::string& name) const {
  const auto found = state_->names.find(name);
  if (found == state_->names.end() || !found->second.several) return {};
  return found->second.addresses;
}

}  // namespace flotilla::gateway
