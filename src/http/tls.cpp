#include "http/tls.h"

#include <openssl/ssl.h>

#include "base/log.h"

namespace flotilla::http {

boost::asio::ssl::context& client_tls_context() {
  static boost::asio::ssl::context context = [] {
    boost::asio::ssl::context made(boost::asio::ssl::context::tls_client);
    boost::system::error_code error;
    made.set_default_verify_paths(error);
    if (error) log::error("the system's certificates cannot be read: {}", error.message());
    made.set_verify_mode(boost::asio::ssl::verify_peer, error);
    SSL_CTX_set_min_proto_version(made.native_handle(), TLS1_2_VERSION);
    constexpr unsigned char kHttp11[] = "\x08http/1.1";
    SSL_CTX_set_alpn_protos(made.native_handle(), kHttp11, sizeof kHttp11 - 1);
    return made;
  }();
  return context;
}

}  // namespace flotilla::http
