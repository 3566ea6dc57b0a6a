#pragma once

#include <boost/asio/ssl/context.hpp>

namespace flotilla::http {

// The context of all clients: TLS 1.2 and up, peers verified with the system's store (SSL_CERT_FILE
// and SSL_CERT_DIR replace it). Loading the store takes milliseconds, so it is done once.
boost::asio::ssl::context& client_tls_context();

}  // namespace flotilla::http
