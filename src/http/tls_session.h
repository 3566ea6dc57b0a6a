#pragma once

#include <memory>
#include <openssl/types.h>
#include <span>
#include <string_view>

namespace flotilla::http {

// A server's side of TLS on a connected, non-blocking socket. Every call is tried at once and says
// what it lacks; who waits for the socket is the Channel. Between calls it holds no buffer of its
// own: a quiet connection costs about 15 KiB (measured).
class TlsSession {
 public:
  enum class Outcome {
    Done,
    WantRead,   // again when the socket can be read
    WantWrite,  // again when it can be written
    End,        // the peer has said that nothing more will come
    Broken,     // an error, or an end without a word
  };

  // The socket outlives it, `context` need not.
  TlsSession(SSL_CTX& context, int socket);
  TlsSession(const TlsSession&) = delete;  // OpenSSL holds a pointer into it
  TlsSession& operator=(const TlsSession&) = delete;

  Outcome accept();  // the handshake
  Outcome read(std::span<char> into, std::size_t& got);
  Outcome peek();  // Done: there is a byte to read
  // All of the bytes, at most 16 KiB (one record); again with the same ones after WantWrite.
  Outcome write(std::string_view bytes);
  // Tells the peer that what it has got is whole.
  void say_end();
  // Bytes are here that the socket does not show.
  bool pending() const;

 private:
  Outcome outcome_of(int returned);

  int socket_;
  struct Free {
    void operator()(SSL* session) const;
  };
  std::unique_ptr<SSL, Free> session_;
  bool usable_ = false;  // the handshake is over and nothing broke since
};

}  // namespace flotilla::http
