#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/task.h"
#include "http/message.h"

namespace flotilla::http {

// Where to connect: a unix socket, or a TCP host by plain HTTP or TLS (system trust store).
struct Endpoint {
  std::string unix_path;  // set: the others are ignored but for host (the Host header)
  std::string host = "localhost";
  std::string address = {};  // of the host's the one to connect to; empty: whichever it has
  std::uint16_t port = 80;
  bool tls = false;
  std::string base_path;  // prefix of every target, e.g. "/v1"; no trailing slash
};

// http://host:port/base or https://…; InvalidArgument naming what is wrong.
Result<Endpoint> parse_url(std::string_view url);

// The body of an answer as it arrives. Closing (or destroying) it before the end drops the
// connection.
class ClientStream {
 public:
  virtual ~ClientStream() = default;
  virtual int status() const = 0;
  virtual const Headers& headers() const = 0;
  // The next bytes (at most 64 KiB), empty at the end of a whole body. Unavailable when the peer is
  // lost before that, DeadlineExceeded when nothing came for `limit`.
  virtual Task<std::string> read(Duration limit) = 0;
  virtual void close() = 0;
};

// A hand on an open() under way, for whoever must end it from outside.
class Cut {
 public:
  // The open() that waits fails at once, and so does each later one.
  void now() {
    done_ = true;
    if (close_) close_();
  }
  bool done() const { return done_; }

 private:
  friend class Client;
  bool done_ = false;
  std::function<void()> close_;  // while an open() waits
};

// A client of one endpoint with kept-alive connections. One executor, one thread.
class Client {
 public:
  Client(Executor executor, Endpoint endpoint);
  ~Client();

  // Sends and waits for the head: Unavailable (cannot connect, lost; `reason` is "connect" when no
  // byte of the request was sent), DeadlineExceeded.
  // `cut` outlives the call.
  Task<std::unique_ptr<ClientStream>> open(Request request, Duration limit, Cut* cut = nullptr);
  // The whole answer, at most `body_max_bytes`.
  Task<Response> fetch(Request request, Duration limit, std::int64_t body_max_bytes = 32LL << 20);
  const Endpoint& endpoint() const;

 private:
  struct State;
  static Task<std::unique_ptr<ClientStream>> open_stream(std::shared_ptr<State> state,
                                                         Request request, Duration limit, Cut* cut);
  std::shared_ptr<State> state_;
};

}  // namespace flotilla::http
