#include "http/client_connection.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <span>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/write.hpp>

#include "http/tls.h"

namespace flotilla::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

const SystemClock kClock;

constexpr std::size_t kHeadMax = 64 << 10;
constexpr std::size_t kReadSmall = 16 << 10;
constexpr std::size_t kReadMin = 4 << 10;   // less room than that is not worth a call
constexpr std::size_t kBodyMax = 64 << 10;  // of one read_body
// What one read takes of a stream that flows: with its buffer 64 KiB, since its reader may be slow.
constexpr std::size_t kTogether = 48 << 10;

Duration left(Instant deadline) {
  return deadline == Instant::max() ? Duration::max() : deadline - kClock.now();
}

std::unexpected<Error> lost(Io io, std::string what) {
  return fail(io == Io::TimedOut ? Code::DeadlineExceeded : Code::Unavailable, std::move(what));
}

std::unexpected<Error> cannot_connect(const std::string& where, bool timed_out,
                                      const std::string& why) {
  return fail(
      Error{.code = timed_out ? Code::DeadlineExceeded : Code::Unavailable,
            .message = "cannot connect to " + where + ": " + (timed_out ? "timed out" : why),
            .reason = "connect"});
}

std::optional<Socket::endpoint_type> unix_address(const std::string& path) {
  try {
    return Socket::endpoint_type(asio::local::stream_protocol::endpoint(path));
  } catch (const boost::system::system_error&) {
    return std::nullopt;  // too long
  }
}

using Found = std::vector<tcp::endpoint>;

// The resolver cannot be interrupted: who waits is woken by a timer that the answer cancels.
struct Lookup {
  explicit Lookup(const Executor& executor) : resolver(executor), done(executor) {}
  tcp::resolver resolver;
  asio::steady_timer done;
  error_code error = asio::error::timed_out;
  Found found;
};

Task<Found> resolve(Executor executor, std::string host, std::uint16_t port, Instant deadline) {
  error_code literal;
  const asio::ip::address address = asio::ip::make_address(host, literal);
  if (!literal) co_return Found{tcp::endpoint(address, port)};
  const auto lookup = std::make_shared<Lookup>(executor);
  lookup->done.expires_at(deadline);
  lookup->resolver.async_resolve(
      host, std::to_string(port), tcp::resolver::numeric_service,
      [lookup](const error_code& error, const tcp::resolver::results_type& results) {
        lookup->error = error;
        for (const auto& entry : results) lookup->found.push_back(entry.endpoint());
        lookup->done.cancel();
      });
  co_await lookup->done.async_wait(kAwait);
  if (!lookup->found.empty()) co_return std::move(lookup->found);
  lookup->resolver.cancel();
  co_return cannot_connect(host, lookup->error == asio::error::timed_out, lookup->error.message());
}

void tune(Socket& socket) {
  const auto set = [&socket](int level, int name, int value) {
    ::setsockopt(socket.native_handle(), level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace

ClientConnection::ClientConnection(Executor executor) : executor_(std::move(executor)) {}

ClientConnection::~ClientConnection() { close(); }

void ClientConnection::close() {
  closed_ = true;
  if (channel_) channel_->close();
}

bool ClientConnection::rest() {
  if (!unused().empty()) return false;
  channel_->rest();
  answered_ = flows_ = was_full_ = false;
  used_ = filled_ = 0;
  // The next answer needs the usual buffer again.
  if (in_.size() > kReadSmall) {
    in_.clear();
    in_.shrink_to_fit();
  }
  return true;
}

bool ClientConnection::reusable() {
  if (!open()) return false;
  // Whatever came unasked, an end or bytes, makes the connection useless (TLS: not so for a ticket,
  // but a new connection costs less than a doubt).
  char byte = 0;
  const ssize_t got = ::recv(channel_->socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

Task<void> ClientConnection::connect(Endpoint endpoint, Instant deadline) {
  if (endpoint.unix_path.empty()) {
    auto connected = co_await connect_tcp(endpoint, deadline);
    if (!connected || !endpoint.tls) co_return connected;
    co_return co_await connect_tls(endpoint.host, deadline);
  }
  const std::optional<Socket::endpoint_type> address = unix_address(endpoint.unix_path);
  if (!address) co_return cannot_connect(endpoint.unix_path, false, "the path is too long");
  channel_ = std::make_shared<Channel>(Socket(executor_));
  channel_->arm(left(deadline));
  const auto [error] = co_await channel_->socket().async_connect(*address, kAwait);
  channel_->disarm();
  if (error) {
    const bool timed_out = channel_->timed_out();
    channel_->close();
    co_return cannot_connect(endpoint.unix_path, timed_out, error.message());
  }
  co_return Result<void>();
}

Task<void> ClientConnection::connect_tcp(Endpoint endpoint, Instant deadline) {
  const std::string& name = endpoint.address.empty() ? endpoint.host : endpoint.address;
  auto found = co_await resolve(executor_, name, endpoint.port, deadline);
  if (!found) co_return fail(std::move(found).error());
  if (closed_) co_return cannot_connect(endpoint.host, false, "it was cut");
  const std::string where = endpoint.host + ":" + std::to_string(endpoint.port);
  std::string why = "no address";
  bool timed_out = false;
  for (std::size_t i = 0; i < found->size(); ++i) {
    // Each address gets its share of the time, so that a dead one leaves some for the next.
    const Duration limit = left(deadline) / static_cast<std::int64_t>(found->size() - i);
    channel_ = std::make_shared<Channel>(Socket(executor_));
    channel_->arm(limit);
    const Socket::endpoint_type generic((*found)[i]);
    const auto [error] = co_await channel_->socket().async_connect(generic, kAwait);
    channel_->disarm();
    if (!error) {
      tune(channel_->socket());
      co_return Result<void>();
    }
    timed_out = channel_->timed_out();
    channel_->close();
    why = error.message();
    if (error == asio::error::operation_aborted && !timed_out) break;
  }
  co_return cannot_connect(where, timed_out, why);
}

Task<void> ClientConnection::connect_tls(std::string host, Instant deadline) {
  tls_ = std::make_unique<Tls>(channel_->socket(), client_tls_context());
  error_code literal;
  asio::ip::make_address(host, literal);
  // SNI carries names only.
  if (literal) SSL_set_tlsext_host_name(tls_->native_handle(), host.c_str());
  error_code error;
  tls_->set_verify_callback(asio::ssl::host_name_verification(host), error);
  channel_->arm(left(deadline));
  const auto [failed] = co_await tls_->async_handshake(asio::ssl::stream_base::client, kAwait);
  channel_->disarm();
  if (failed) {
    const bool timed_out = channel_->timed_out();
    channel_->close();
    co_return cannot_connect(host + " by TLS", timed_out, failed.message());
  }
  co_return Result<void>();
}

Awaitable<Io> ClientConnection::write(std::string_view head, std::string_view body,
                                      Instant deadline) {
  if (!tls_) {
    const Channel::Parts parts{head, body, ""};
    co_return co_await channel_->write(parts, left(deadline));
  }
  channel_->arm(left(deadline));
  const std::array<asio::const_buffer, 2> buffers{asio::buffer(head.data(), head.size()),
                                                  asio::buffer(body.data(), body.size())};
  const auto [error, sent] = co_await asio::async_write(*tls_, buffers, kAwait);
  channel_->disarm();
  if (!error) co_return Io::Ok;
  co_return channel_->timed_out() ? Io::TimedOut : Io::Closed;
}

// More bytes behind what is unused.
Awaitable<Channel::Read> ClientConnection::fill(Duration limit) {
  if (used_ > 0) {
    std::memmove(in_.data(), in_.data() + used_, filled_ - used_);
    filled_ -= used_;
    used_ = 0;
  }
  if (in_.size() < filled_ + kReadMin) in_.resize(filled_ + kReadSmall);
  const std::span<char> into = std::span(in_).subspan(filled_);
  Channel::Read read;
  if (tls_) {
    channel_->arm(limit);
    const auto [error, got] =
        co_await tls_->async_read_some(asio::buffer(into.data(), into.size()), kAwait);
    channel_->disarm();
    // An end without the peer's word (stream_truncated) may be an attack: not an end.
    read = {.io = channel_->timed_out() ? Io::TimedOut
                  : error               ? Io::Closed
                                        : Io::Ok,
            .got = got,
            .eof = error == asio::error::eof};
  } else {
    bool nothing = true;
    if (flows_) {
      // Within a body others have their turn first: what comes meanwhile is taken, and passed on,
      // by the same calls.
      co_await asio::post(executor_, kAwait);
      read = channel_->try_read(into);
      nothing = read.io == Io::Ok && read.got == 0;
    }
    if (nothing) read = co_await channel_->read_some(into, limit);
  }
  filled_ += read.got;
  answered_ = answered_ || read.got > 0;
  was_full_ = read.got == into.size();
  co_return read;
}

// What the kernel has behind a read that filled the buffer goes with it. An end or a loss shows at
// the next read; but without chunks or a length a loss, which the kernel tells once, would then be
// taken for the end.
void ClientConnection::take_more(BodyDecoder& decoder, std::string& out) {
  const bool more = decoder.state() == BodyDecoder::State::More && unused().empty();
  if (!was_full_ || !more || tls_ || decoder.ends_with_connection()) return;
  was_full_ = false;
  const std::size_t room = kTogether - std::min(out.size(), kTogether);
  if (room == 0) return;
  thread_local std::array<char, kTogether> buffer;  // for all: nothing stays in it
  const Channel::Read read = channel_->try_read(std::span(buffer).first(room));
  const std::string_view bytes(buffer.data(), read.got);
  out.reserve(out.size() + bytes.size());
  const std::size_t taken = decoder.feed(bytes, out, room);
  if (taken == bytes.size()) return;
  in_.assign(bytes.substr(taken));
  used_ = 0;
  filled_ = in_.size();
}

Task<ResponseHead> ClientConnection::read_head(Instant deadline) {
  HeadScanner scanner;
  while (true) {
    const std::string_view bytes = unused();
    const auto state = bytes.empty() ? HeadScanner::State::More : scanner.scan(bytes);
    if (state == HeadScanner::State::Malformed || bytes.size() > kHeadMax + kReadSmall) {
      co_return fail(Code::Unavailable, "the answer is not valid HTTP/1.1");
    }
    if (state == HeadScanner::State::Whole) {
      auto head = parse_response_head(bytes.substr(0, scanner.size()));
      used_ += scanner.size();
      if (!head) {
        co_return fail(Code::Unavailable, "the answer is not valid HTTP/1.1: " + head.error());
      }
      if (head->status >= 200) co_return std::move(*head);
      scanner = HeadScanner();
      continue;
    }
    const Channel::Read read = co_await fill(left(deadline));
    if (read.io != Io::Ok) {
      co_return lost(read.io, read.io == Io::TimedOut
                                  ? "no answer in time"
                                  : "the connection was lost before the answer");
    }
  }
}

Task<std::string> ClientConnection::read_body(BodyDecoder& decoder, Duration limit) {
  std::string out;
  while (true) {
    const std::string_view bytes = unused();
    out.reserve(std::min(bytes.size(), kBodyMax));  // at once, not chunk by chunk
    used_ += decoder.feed(bytes, out, kBodyMax - out.size());
    if (decoder.state() == BodyDecoder::State::Malformed) {
      co_return fail(Code::Unavailable, "the answer's chunks are malformed");
    }
    if (!out.empty()) {
      flows_ = true;
      take_more(decoder, out);
    }
    if (!out.empty() || decoder.state() == BodyDecoder::State::Done) co_return out;
    const Channel::Read read = co_await fill(limit);
    if (read.io == Io::Closed && read.eof && decoder.ends_with_connection()) {
      decoder.end();
      co_return out;
    }
    if (read.io != Io::Ok) {
      co_return lost(read.io, read.io == Io::TimedOut
                                  ? "nothing of the answer came in time"
                                  : "the connection was lost within the answer");
    }
  }
}

}  // namespace flotilla::http
