#include "http/tls_session.h"

#include <cerrno>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <utility>

#include "base/check.h"

namespace flotilla::http {
namespace {

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int socket_of(BIO* bio) { return *static_cast<const int*>(BIO_get_data(bio)); }

int read_socket(BIO* bio, char* into, std::size_t size, std::size_t* got) {
  BIO_clear_retry_flags(bio);
  const ssize_t taken = ::recv(socket_of(bio), into, size, MSG_DONTWAIT);
  if (taken < 0 && would_block()) BIO_set_retry_read(bio);
  if (taken <= 0) return 0;
  *got = static_cast<std::size_t>(taken);
  return 1;
}

int write_socket(BIO* bio, const char* bytes, std::size_t size, std::size_t* sent) {
  BIO_clear_retry_flags(bio);
  const ssize_t taken = ::send(socket_of(bio), bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (taken < 0 && would_block()) BIO_set_retry_write(bio);
  if (taken <= 0) return 0;
  *sent = static_cast<std::size_t>(taken);
  return 1;
}

long control_socket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

// OpenSSL's own socket BIO writes without MSG_NOSIGNAL: a client that went away would end us.
BIO_METHOD* socket_method() {
  static BIO_METHOD* method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "quiet socket");
    CHECK(made);
    BIO_meth_set_read_ex(made, read_socket);
    BIO_meth_set_write_ex(made, write_socket);
    BIO_meth_set_ctrl(made, control_socket);
    return made;
  }();
  return method;
}

}  // namespace

void TlsSession::Free::operator()(SSL* session) const { SSL_free(session); }

TlsSession::TlsSession(SSL_CTX& context, int socket)
    : socket_(socket), session_(SSL_new(&context)) {
  BIO* bio = BIO_new(socket_method());
  CHECK(session_ && bio);
  BIO_set_data(bio, &socket_);
  BIO_set_init(bio, 1);
  SSL_set_bio(session_.get(), bio, bio);  // one reference serves both directions
  SSL_set_accept_state(session_.get());
}

TlsSession::Outcome TlsSession::outcome_of(int returned) {
  if (returned == 1) return Outcome::Done;
  switch (SSL_get_error(session_.get(), returned)) {
    case SSL_ERROR_WANT_READ: return Outcome::WantRead;
    case SSL_ERROR_WANT_WRITE: return Outcome::WantWrite;
    case SSL_ERROR_ZERO_RETURN: return Outcome::End;
    default: usable_ = false; return Outcome::Broken;
  }
}

// The library's queue of errors is the thread's: what another session left there is not ours.
TlsSession::Outcome TlsSession::accept() {
  ERR_clear_error();
  const Outcome outcome = outcome_of(SSL_accept(session_.get()));
  usable_ = outcome == Outcome::Done;
  return outcome;
}

TlsSession::Outcome TlsSession::read(std::span<char> into, std::size_t& got) {
  ERR_clear_error();
  return outcome_of(SSL_read_ex(session_.get(), into.data(), into.size(), &got));
}

TlsSession::Outcome TlsSession::peek() {
  ERR_clear_error();
  char byte = 0;
  std::size_t got = 0;
  return outcome_of(SSL_peek_ex(session_.get(), &byte, 1, &got));
}

TlsSession::Outcome TlsSession::write(std::string_view bytes) {
  ERR_clear_error();
  std::size_t sent = 0;
  return outcome_of(SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &sent));
}

void TlsSession::say_end() {
  if (!std::exchange(usable_, false)) return;
  ERR_clear_error();
  SSL_shutdown(session_.get());
}

bool TlsSession::pending() const { return SSL_pending(session_.get()) > 0; }

}  // namespace flotilla::http
