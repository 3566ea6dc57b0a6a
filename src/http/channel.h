#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <openssl/types.h>
#include <optional>
#include <span>
#include <string_view>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/task.h"
#include "http/tls_session.h"

namespace flotilla::http {

using Socket = boost::asio::generic::stream_protocol::socket;

enum class Io { Ok, Closed, TimedOut };

// A connected socket (TCP or unix), within TLS where it is a server's, and one timer. Reads and
// writes are tried at once and wait only when the kernel has nothing: a wait costs no allocation of
// a timer, its limit is a stored instant that the pending timer looks at when it fires. On the
// thread of the executor; one waits to read and one to write at most, and their limits are not
// mixed: the one set last holds.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  explicit Channel(Socket socket);

  Socket& socket() { return socket_; }
  bool open() const { return socket_.is_open(); }
  // At once; within TLS what was sent counts as cut.
  void close();
  // No more will be sent; what the peer still sends can be read.
  void shut_write();

  // The handshake of a server; what is read and written afterwards goes through it.
  Awaitable<Io> accept_tls(std::shared_ptr<SSL_CTX> context, Duration limit);

  // Bytes into `into` as soon as there are some; Closed with got = 0 at the peer's end (`eof`) or
  // error. Not within TLS.
  struct Read {
    Io io = Io::Closed;
    std::size_t got = 0;
    bool eof = false;
  };
  Awaitable<Read> read_some(std::span<char> into, Duration limit);
  // The same without waiting: Ok with got = 0 when there is nothing.
  Read try_read(std::span<char> into);
  // Until there is something to read (or the end). Within TLS it may turn out to be nothing.
  Awaitable<Io> wait_readable(Duration limit);
  // What is there to read, without taking or waiting.
  enum class Seen { Nothing, Bytes, End };
  Seen look();
  // Before a read that is tried at once: a peer whose bytes are always there gets a number of them
  // in a row, then others have their turn, which is to be awaited.
  bool must_make_way();
  Awaitable<void> make_way();
  // Bytes are here that the socket does not show.
  bool pending() const { return tls_ && tls_->pending(); }

  // All of the parts, in order, in one call of the kernel when it takes them. `stall`: no byte
  // taken for so long. What is not Ok leaves the peer with a part. The channel is then closed, but
  // not for a peer that refuses bytes: what it sent before can still be read.
  using Parts = std::array<std::string_view, 3>;
  Awaitable<Io> write(Parts parts, Duration stall);
  // The same without waiting, or nothing: then `parts` are what is left for write(). After an Ok it
  // is the caller who makes way where he must.
  std::optional<Io> write_now(Parts& parts);

  // One attempt at bytes behind which nothing comes: where they do not fit nobody waits. At most 16
  // KiB, and no write is under way.
  void try_write(std::string_view bytes);

  // For operations on socket() of others (TLS, connect): closes the socket when `limit` is over,
  // since those consist of several and cancelling could fall between two.
  void arm(Duration limit) { arm(limit, true); }
  void disarm() { deadline_ = Instant::max(); }
  bool timed_out() const { return timed_out_; }
  // The timer keeps its context busy: to be called when the channel rests.
  void rest();

 private:
  void arm(Duration limit, bool closes);
  void start_timer(Instant at);
  void on_timer();
  Awaitable<Io> wait(boost::asio::socket_base::wait_type what, Duration limit);
  Io finish(const boost::system::error_code& error);
  Read try_read_tls(std::span<char> into);
  Awaitable<Io> wait_for(TlsSession::Outcome lacking, Duration limit);
  Awaitable<Io> write_tls(Parts parts, Duration stall);

  Socket socket_;
  std::unique_ptr<TlsSession> tls_;
  boost::asio::steady_timer timer_;
  Instant deadline_ = Instant::max();
  Instant timer_at_ = Instant::max();  // when the pending timer fires; max: none is pending
  bool closes_ = false;                // what the deadline does: close, or end the wait
  bool timed_out_ = false;
  int turns_ = 0;  // calls of the kernel since this coroutine last let others run
};

}  // namespace flotilla::http
