#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/blocking_thread.h"
#include "gateway/gateway.h"
#include "http/certificate.h"
#include "http/client.h"
#include "http/cors.h"
#include "http/forwarded.h"
#include "http/server.h"

namespace flotilla::gateway {

// What stands between the network and the routes. Made before the loop runs; ends before its
// context does, since it gives work to a thread.
class Front {
 public:
  // InvalidArgument naming the flag, its value and the remedy.
  static Result<std::unique_ptr<Front>> make(const GatewayOptions& options);

  const std::vector<http::AddressRange>& trusted_proxies() const { return trusted_proxies_; }
  // The routes, with CORS before those of /v1 where some site is allowed.
  http::Handler before(http::Handler routes) const;
  bool speaks_tls() const { return files_ != nullptr; }
  // Gives the server its certificate, before it listens.
  void equip(http::Server& server) const;
  // Gives it each new one: the files are looked at every 2 s, and read on SIGHUP in any case. A
  // pair that cannot be used is logged and the old one stays. Without files SIGHUP does nothing.
  Awaitable<void> watch_certificate(http::Server& server);

 private:
  std::vector<http::AddressRange> trusted_proxies_;
  http::Cors cors_;
  std::unique_ptr<http::CertificateFiles> files_;  // null: plain HTTP
  std::unique_ptr<http::Certificate> first_;
  std::unique_ptr<BlockingThread> thread_;  // reads the files
};

// All addresses of the machine.
bool is_any_address(std::string_view host);
// Where what listens on `host` is reached from this machine.
std::string host_from_here(const std::string& host);

// Where the server reaches itself: at `port`, or, since nobody need have issued its certificate for
// a name that this machine knows itself by, through a socket of its own.
Result<http::Endpoint> listen_to_itself(http::Server& server, const GatewayOptions& options,
                                        std::uint16_t port);

}  // namespace flotilla::gateway
