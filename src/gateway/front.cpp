#include "gateway/front.h"

#include <csignal>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "platform/socket_dir.h"

namespace flotilla::gateway {
namespace {

constexpr Duration kLookEvery = std::chrono::seconds(2);

Result<void> check_tls_flags(const GatewayOptions& options) {
  if (options.tls_certificate.empty() == options.tls_key.empty()) return {};
  const bool lacks_key = options.tls_key.empty();
  return fail(Code::InvalidArgument,
              fmt::format("{} {} needs {} FILE too: a certificate and its private key go together",
                          lacks_key ? "--tls-cert" : "--tls-key",
                          (lacks_key ? options.tls_certificate : options.tls_key).string(),
                          lacks_key ? "--tls-key" : "--tls-cert"));
}

}  // namespace

Result<std::unique_ptr<Front>> Front::make(const GatewayOptions& options) {
  auto front = std::make_unique<Front>();
  if (auto may = check_tls_flags(options); !may) return fail(may.error());
  auto cors = http::Cors::make(options.cors_origins);
  if (!cors) return fail(cors.error().code, "--cors-origin: " + cors.error().message);
  front->cors_ = std::move(*cors);
  for (const std::string& proxy : options.trusted_proxies) {
    auto range = http::AddressRange::parse(proxy);
    if (!range) return fail(range.error().code, "--trusted-proxy: " + range.error().message);
    front->trusted_proxies_.push_back(*range);
  }
  if (options.tls_certificate.empty()) return front;
  front->files_ = std::make_unique<http::CertificateFiles>(options.tls_certificate.string(),
                                                           options.tls_key.string());
  auto read = front->files_->read();
  if (!read) return fail(read.error().code, "--tls-cert, --tls-key: " + read.error().message);
  log::info("TLS with the certificate for {}", read->subject());
  front->first_ = std::make_unique<http::Certificate>(std::move(*read));
  front->thread_ = std::make_unique<BlockingThread>();
  return front;
}

http::Handler Front::before(http::Handler routes) const {
  if (!cors_.allows_any()) return routes;
  // /admin is for our own pages only.
  return [this, routes = std::move(routes)](http::Exchange& exchange) {
    const bool open = exchange.request().path().starts_with("/v1/");
    return open ? cors_.handle(exchange, routes) : routes(exchange);
  };
}

void Front::equip(http::Server& server) const {
  if (first_) server.use(*first_);
}

Awaitable<void> Front::watch_certificate(http::Server& server) {
  using namespace boost::asio::experimental::awaitable_operators;
  const Executor executor = co_await boost::asio::this_coro::executor;
  boost::asio::steady_timer timer(executor);
  boost::asio::signal_set hangup(executor, SIGHUP);
  while (!files_) {
    const auto [error, signal] = co_await hangup.async_wait(kAwait);
    if (error) co_return;
    log::info("SIGHUP: there is no certificate to read again");
  }
  while (true) {
    timer.expires_after(kLookEvery);
    const auto woken = co_await (timer.async_wait(kAwait) || hangup.async_wait(kAwait));
    const bool asked = woken.index() == 1;
    auto look = [files = files_.get(), asked] {
      return asked ? std::optional(files->read()) : files->read_if_changed();
    };
    const auto read = co_await thread_->run(std::move(look));
    if (!read) continue;
    if (*read) {
      server.use(**read);
      log::info("new connections get the certificate for {}", (*read)->subject());
    } else {
      log::error("the certificate in use stays: {}", read->error().message);
    }
  }
}

bool is_any_address(std::string_view host) { return host == "0.0.0.0" || host == "::"; }

std::string host_from_here(const std::string& host) {
  return is_any_address(host) ? "127.0.0.1" : host;
}

Result<http::Endpoint> listen_to_itself(http::Server& server, const GatewayOptions& options,
                                        std::uint16_t port) {
  http::Endpoint endpoint;
  if (options.tls_certificate.empty()) {
    endpoint.host = host_from_here(options.host);
    endpoint.port = port;
    return endpoint;
  }
  const auto folder = platform::make_socket_dir(options.state_dir);
  if (!folder) return fail(folder.error());
  endpoint.unix_path = (*folder / "itself").string();
  if (auto listens = server.listen_unix(endpoint.unix_path); !listens) {
    return fail(listens.error());
  }
  return endpoint;
}

}  // namespace flotilla::gateway
