#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/task.h"
#include "http/certificate.h"
#include "http/forwarded.h"
#include "http/message.h"

namespace flotilla::http {

// One request and its answer. Lives on the server's I/O thread, until the handler returns.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const Request& request() const = 0;
  virtual Request take_request() = 0;  // moves it out, body included

  // All writers: false = the client is gone, or took no byte for write_stall; stop.
  virtual Awaitable<bool> respond(Response response) = 0;
  // A body of unknown length (chunked). Call write() any number of times, then finish() or abort().
  // What the body begins and ends with goes out in one call with the head and the end.
  virtual Awaitable<bool> start(int status, Headers headers, std::string_view first = {}) = 0;
  virtual Awaitable<bool> write(std::string_view bytes) = 0;
  virtual Awaitable<bool> finish(std::string_view last = {}) = 0;
  // Cuts the connection: what was sent is visibly not whole.
  virtual void abort() = 0;

  virtual bool started() const = 0;  // the head is out
  virtual bool client_gone() const = 0;
  // `callback` runs once, on the I/O thread, when the client closes or shuts its write side.
  virtual void on_client_gone(std::function<void()> callback) = 0;
};

using Handler = std::function<Awaitable<void>(Exchange&)>;

struct BodyPermit {
  std::int64_t bytes_max = 0;
  std::string key =
      {};  // whose share of all bodies it takes, beside its network's; empty: nobody's
  Headers headers = {};  // of the answer that says that its share is used up
  std::any sender = {};  // becomes Request::sender, so that the handler need not look again
};

struct ServerOptions {
  std::int64_t body_max_bytes = 32LL << 20;
  // All bodies together, each until its request is answered; beyond: 503.
  std::int64_t bodies_max_bytes = 512LL << 20;
  std::int64_t bodies_max_bytes_of_network = 256LL << 20;  // of those, one client network's
  std::int64_t bodies_max_bytes_of_key = 128LL << 20;      // and one key's; beyond: 429
  std::int64_t small_body_bytes = 16 << 10;  // passes all the same: the connections bound these
  std::int64_t header_max_bytes = 64 << 10;
  // One more cuts the one that has waited longest for a request, or for its body to come on; where
  // none does, it is answered 503.
  int connections_max = 20000;
  int connections_max_of_network = 10000;  // but for trusted proxies and unix sockets
  int handshakes_max = 2048;               // of those; one more cuts the oldest
  Duration handshake_timeout = std::chrono::seconds(10);
  Duration head_timeout =
      std::chrono::seconds(20);  // from the first byte (or the accept) to a whole head
  Duration body_timeout = std::chrono::seconds(120);  // from the head to a whole body
  Duration body_pace = std::chrono::seconds(5);       // for each body_pace_bytes of it
  std::size_t body_pace_bytes = 16 << 10;
  Duration idle_timeout = std::chrono::seconds(120);  // between requests of a connection
  Duration write_stall = std::chrono::seconds(60);    // without a byte taken by the client
  // From these Forwarded and X-Forwarded-For/-Proto say who the request's peer is.
  std::vector<AddressRange> trusted_proxies;
  // The kernel's buffer of a connection: what a slow reader has in flight beyond what it took.
  int send_buffer_bytes = 64 << 10;
  // The answer to what never reaches the handler (malformed, too large, too slow), in the form of
  // the API at `path`; empty where the head was not read.
  std::function<Response(int status, std::string_view message, std::string_view path)>
      error_response;
  // Set: asked before a body is read, with the head alone. Who may send none is answered there and
  // then, and the connection ends.
  std::function<Awaitable<BodyPermit>(Exchange&)> admit_body;
  // Set: every answer has an X-Request-Id, this one where the handler gives none.
  std::function<std::string()> request_id;
};

// An HTTP/1.1 server on one executor, which one thread runs.
class Server {
 public:
  Server(Executor executor, Handler handler, ServerOptions options);
  ~Server();

  // Port 0 takes a free one; the answer is the port. Conflict when it is in use.
  Result<std::uint16_t> listen_tcp(const std::string& host, std::uint16_t port);
  // The socket file is replaced if nobody listens on it; mode 0600.
  Result<void> listen_unix(const std::string& path);

  // From here on new TCP connections speak TLS with this certificate; the others keep theirs.
  void use(const Certificate& certificate);

  // Stops accepting; idle connections close at once, running exchanges get `drain`, then are cut.
  Awaitable<void> shutdown(Duration drain);
  int connections() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace flotilla::http
