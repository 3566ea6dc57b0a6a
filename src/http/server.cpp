#include "http/server.h"

#include <algorithm>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "base/log.h"
#include "http/connection.h"

namespace flotilla::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;
using boost::system::error_code;

constexpr Duration kAcceptPause = std::chrono::milliseconds(100);
constexpr Duration kCutWait = std::chrono::seconds(5);
constexpr std::size_t kUnixPathMax = 100;

Peer peer_of(const tcp::socket& socket, const ServerCore& core) {
  error_code error;
  asio::ip::address address = socket.remote_endpoint(error).address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  Peer peer{
      .address = address.to_string(), .loopback = !error && address.is_loopback(), .tls = core.tls};
  const bool is_proxy =
      std::ranges::any_of(core.options.trusted_proxies,
                          [&peer](const auto& range) { return range.contains(peer.address); });
  if (!is_proxy) peer.network = network_of(peer.address);
  return peer;
}

Peer peer_of(const stream_protocol::socket&, const ServerCore&) { return {}; }

// Small writes leave at once; a client that vanished without a word is noticed within a minute; the
// kernel holds little for a slow reader.
void tune(tcp::socket& socket, const ServerOptions& options) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set = [&socket](int name, int value) {
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, name, &value, sizeof value);
  };
  set(TCP_KEEPIDLE, 30);
  set(TCP_KEEPINTVL, 10);
  set(TCP_KEEPCNT, 3);
  socket.set_option(asio::socket_base::send_buffer_size(options.send_buffer_bytes), ignored);
}

void tune(stream_protocol::socket& socket, const ServerOptions& options) {
  error_code ignored;
  socket.set_option(asio::socket_base::send_buffer_size(options.send_buffer_bytes), ignored);
}

std::unexpected<Error> listen_failed(const std::string& where, const error_code& error) {
  const bool taken = error == asio::error::address_in_use;
  return fail(taken ? Code::Conflict : Code::InvalidArgument,
              "cannot listen on " + where + ": " + error.message() +
                  (taken ? "; end what listens there, or choose another --port" : ""));
}

}  // namespace

struct Server::State : std::enable_shared_from_this<State> {
  State(Executor on, Handler handler, ServerOptions options)
      : executor(std::move(on)), core(std::make_shared<ServerCore>()), changed(executor) {
    core->handler = std::move(handler);
    core->options = std::move(options);
  }

  template <class Acceptor>
  void start(std::shared_ptr<Acceptor> acceptor);
  template <class Acceptor>
  static Awaitable<void> accept_loop(std::shared_ptr<State> self,
                                     std::shared_ptr<Acceptor> acceptor);
  template <class AcceptedSocket>
  void take(AcceptedSocket socket);
  bool make_room(const std::string& network);
  void refuse(Socket socket);
  void stop_accepting();
  void cut_all();
  static Awaitable<bool> wait_empty(std::shared_ptr<State> self, Duration limit);

  Executor executor;
  std::shared_ptr<ServerCore> core;
  std::vector<std::function<void()>> stop_listening;
  std::unordered_set<Connection*> connections;  // owned by their coroutines
  std::unordered_map<std::string, int> of_network;
  asio::steady_timer changed;  // cancelled when the last connection is over
};

template <class Acceptor>
void Server::State::start(std::shared_ptr<Acceptor> acceptor) {
  stop_listening.emplace_back([acceptor] {
    error_code ignored;
    acceptor->close(ignored);
  });
  asio::co_spawn(executor, accept_loop(shared_from_this(), acceptor), [](std::exception_ptr error) {
    if (error) log::error("accepting connections ended by an exception");
  });
}

template <class Acceptor>
Awaitable<void> Server::State::accept_loop(std::shared_ptr<State> self,
                                           std::shared_ptr<Acceptor> acceptor) {
  asio::steady_timer pause(self->executor);
  while (acceptor->is_open()) {
    auto [error, socket] = co_await acceptor->async_accept(kAwait);
    if (!acceptor->is_open()) break;
    if (!error) {
      self->take(std::move(socket));
      continue;
    }
    // Mostly out of descriptors: the connection stays in the backlog and would wake us at once.
    log::warning("cannot accept a connection: {}", error.message());
    if (error == asio::error::no_descriptors) self->core->cut_oldest_waiting();
    pause.expires_after(kAcceptPause);
    co_await pause.async_wait(kAwait);
  }
}

// Who opens connections and says nothing must not keep others out.
bool Server::State::make_room(const std::string& network) {
  const ServerOptions& options = core->options;
  const auto of_its = of_network.find(network);
  if (of_its != of_network.end() && of_its->second >= options.connections_max_of_network) {
    return core->cut_oldest_waiting(network);
  }
  if (connections.size() < static_cast<std::size_t>(options.connections_max)) return true;
  return core->cut_oldest_waiting();
}

template <class AcceptedSocket>
void Server::State::take(AcceptedSocket socket) {
  if (core->draining) return;
  tune(socket, core->options);
  Peer peer = peer_of(socket, *core);
  if (!make_room(peer.network)) {
    if (!peer.tls) refuse(Socket(std::move(socket)));
    return;
  }
  if (!peer.network.empty()) ++of_network[peer.network];
  const auto connection =
      std::make_shared<Connection>(core, Socket(std::move(socket)), std::move(peer));
  connections.insert(connection.get());
  asio::co_spawn(executor, connection->serve(),
                 [self = shared_from_this(), connection](std::exception_ptr error) {
                   if (error) log::error("a connection ended by an exception");
                   self->connections.erase(connection.get());
                   const auto mine = self->of_network.find(connection->peer().network);
                   if (mine != self->of_network.end() && --mine->second == 0) {
                     self->of_network.erase(mine);
                   }
                   if (self->connections.empty()) self->changed.cancel();
                 });
}

// One attempt to say why; nothing of a connection beyond the limit is kept.
void Server::State::refuse(Socket socket) {
  const std::string out = core->last_words(503, "too many connections");
  ::send(socket.native_handle(), out.data(), out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Server::State::stop_accepting() {
  for (const auto& stop : std::exchange(stop_listening, {})) stop();
}

void Server::State::cut_all() {
  for (Connection* connection : connections) connection->cut();
}

Awaitable<bool> Server::State::wait_empty(std::shared_ptr<State> self, Duration limit) {
  const Instant deadline = SystemClock().now() + limit;
  while (!self->connections.empty() && SystemClock().now() < deadline) {
    self->changed.expires_at(deadline);
    co_await self->changed.async_wait(kAwait);
  }
  co_return self->connections.empty();
}

Server::Server(Executor executor, Handler handler, ServerOptions options)
    : state_(std::make_shared<State>(std::move(executor), std::move(handler), std::move(options))) {
}

Server::~Server() {
  state_->core->draining = true;
  state_->stop_accepting();
  state_->cut_all();
}

void Server::use(const Certificate& certificate) { state_->core->tls = certificate.context(); }

int Server::connections() const { return static_cast<int>(state_->connections.size()); }

Result<std::uint16_t> Server::listen_tcp(const std::string& host, std::uint16_t port) {
  const std::string where = host + ":" + std::to_string(port);
  error_code error;
  tcp::endpoint endpoint(asio::ip::make_address(host, error), port);
  if (error) {
    tcp::resolver resolver(state_->executor);
    const auto found = resolver.resolve(host, std::to_string(port), error);
    if (error || found.empty()) return listen_failed(where, error);
    endpoint = found.begin()->endpoint();
  }
  const auto acceptor = std::make_shared<tcp::acceptor>(state_->executor);
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(asio::socket_base::reuse_address(true), error);
  if (!error && endpoint.address().is_v6() && endpoint.address().is_unspecified()) {
    acceptor->set_option(asio::ip::v6_only(false), error);
  }
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  if (error) return listen_failed(where, error);
  const std::uint16_t bound = acceptor->local_endpoint(error).port();
  state_->start(acceptor);
  return bound;
}

namespace {

// Removes the socket file of a process that is no more.
Result<void> remove_stale(const std::string& path, const Executor& executor) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode)) return fail(Code::Conflict, path + " exists and is no socket");
  stream_protocol::socket probe(executor);
  error_code error;
  probe.open(stream_protocol(), error);
  probe.native_non_blocking(true, error);
  probe.connect(stream_protocol::endpoint(path), error);
  // A full backlog is somebody, too.
  if (!error || error == asio::error::would_block || error == asio::error::try_again) {
    return fail(Code::Conflict, "somebody listens on " + path);
  }
  ::unlink(path.c_str());
  return {};
}

}  // namespace

Result<void> Server::listen_unix(const std::string& path) {
  if (path.empty() || path.size() > kUnixPathMax) {
    return fail(Code::InvalidArgument, "a socket's path has 1 to 100 bytes, this one has " +
                                           std::to_string(path.size()) + ": " + path);
  }
  if (const auto free = remove_stale(path, state_->executor); !free) return free;
  const auto acceptor = std::make_shared<stream_protocol::acceptor>(state_->executor);
  error_code error;
  acceptor->open(stream_protocol(), error);
  if (!error) acceptor->bind(stream_protocol::endpoint(path), error);
  // Nobody can connect before listen().
  if (!error && ::chmod(path.c_str(), 0600) != 0) {
    error.assign(errno, boost::system::system_category());
  }
  if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  if (error) return listen_failed(path, error);
  struct stat ours{};
  ::lstat(path.c_str(), &ours);
  state_->start(acceptor);
  state_->stop_listening.emplace_back([path, ours] {
    struct stat now{};
    const bool same =
        ::lstat(path.c_str(), &now) == 0 && now.st_ino == ours.st_ino && now.st_dev == ours.st_dev;
    if (same) ::unlink(path.c_str());
  });
  return {};
}

Awaitable<void> Server::shutdown(Duration drain) {
  const std::shared_ptr<State> state = state_;
  state->core->draining = true;
  state->stop_accepting();
  for (Connection* connection : state->connections) {
    if (connection->idle()) connection->cut();
  }
  const bool drained = co_await State::wait_empty(state, drain);
  if (drained) co_return;
  log::warning("shutdown: {} connections are cut", state->connections.size());
  state->cut_all();
  const bool gone = co_await State::wait_empty(state, kCutWait);
  if (!gone) log::error("shutdown: {} handlers did not end", state->connections.size());
}

}  // namespace flotilla::http
