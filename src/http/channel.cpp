#include "http/channel.h"

#include <algorithm>
#include <string>
#include <sys/socket.h>
#include <sys/uio.h>
#include <tuple>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>

namespace flotilla::http {
namespace {

const SystemClock kClock;

// Calls that succeed at once before a coroutine makes way for others.
constexpr int kTurnsMax = 32;
// What TLS puts into one record at most: one call of the kernel.
constexpr std::size_t kRecordMax = 16 << 10;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

Channel::Channel(Socket socket) : socket_(std::move(socket)), timer_(socket_.get_executor()) {
  boost::system::error_code ignored;
  if (socket_.is_open()) socket_.native_non_blocking(true, ignored);
}

void Channel::close() {
  rest();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

void Channel::shut_write() {
  if (tls_ && open()) tls_->say_end();
  boost::system::error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

void Channel::rest() {
  deadline_ = Instant::max();
  if (timer_at_ == Instant::max()) return;
  timer_at_ = Instant::max();
  timer_.cancel();
}

void Channel::arm(Duration limit, bool closes) {
  closes_ = closes;
  timed_out_ = false;
  const Instant now = kClock.now();
  deadline_ = limit < Instant::max() - now ? now + limit : Instant::max();
  if (deadline_ < timer_at_) start_timer(deadline_);
}

void Channel::start_timer(Instant at) {
  timer_at_ = at;
  timer_.expires_at(at);
  timer_.async_wait([self = weak_from_this(), at](const boost::system::error_code& error) {
    const std::shared_ptr<Channel> channel = self.lock();
    if (error || !channel || channel->timer_at_ != at) return;
    channel->timer_at_ = Instant::max();
    channel->on_timer();
  });
}

void Channel::on_timer() {
  if (deadline_ == Instant::max()) return;
  if (kClock.now() < deadline_) return start_timer(deadline_);
  timed_out_ = true;
  deadline_ = Instant::max();
  boost::system::error_code ignored;
  if (closes_) {
    close();
  } else {
    socket_.cancel(ignored);
  }
}

Io Channel::finish(const boost::system::error_code& error) {
  disarm();
  if (!error) return Io::Ok;
  return timed_out_ ? Io::TimedOut : Io::Closed;
}

Awaitable<Io> Channel::wait(boost::asio::socket_base::wait_type what, Duration limit) {
  const bool reads = what == boost::asio::socket_base::wait_read;
  if (reads && pending()) co_return Io::Ok;
  arm(limit, false);
  turns_ = 0;
  const auto [error] = co_await socket_.async_wait(what, kAwait);
  co_return finish(error);
}

Awaitable<Io> Channel::wait_readable(Duration limit) {
  return wait(boost::asio::socket_base::wait_read, limit);
}

Awaitable<Io> Channel::wait_for(TlsSession::Outcome lacking, Duration limit) {
  const bool writes = lacking == TlsSession::Outcome::WantWrite;
  return wait(writes ? boost::asio::socket_base::wait_write : boost::asio::socket_base::wait_read,
              limit);
}

Awaitable<Io> Channel::accept_tls(std::shared_ptr<SSL_CTX> context, Duration limit) {
  if (!open()) co_return Io::Closed;
  tls_ = std::make_unique<TlsSession>(*context, socket_.native_handle());
  const Instant deadline = kClock.now() + limit;
  while (open()) {
    const TlsSession::Outcome outcome = tls_->accept();
    if (outcome == TlsSession::Outcome::Done) co_return Io::Ok;
    if (outcome == TlsSession::Outcome::End || outcome == TlsSession::Outcome::Broken) break;
    const Io io = co_await wait_for(outcome, deadline - kClock.now());
    if (io != Io::Ok) co_return io;
  }
  co_return Io::Closed;
}

Channel::Read Channel::try_read_tls(std::span<char> into) {
  std::size_t got = 0;
  switch (tls_->read(into, got)) {
    case TlsSession::Outcome::Done: return {.io = Io::Ok, .got = got};
    case TlsSession::Outcome::End: return {.io = Io::Closed, .eof = true};
    case TlsSession::Outcome::Broken: return {};
    default: return {.io = Io::Ok};
  }
}

Channel::Seen Channel::look() {
  if (!open()) return Seen::End;
  if (tls_) {
    switch (tls_->peek()) {
      case TlsSession::Outcome::Done: return Seen::Bytes;
      case TlsSession::Outcome::End:
      case TlsSession::Outcome::Broken: return Seen::End;
      default: return Seen::Nothing;
    }
  }
  char byte = 0;
  const ssize_t got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got > 0) return Seen::Bytes;
  return got < 0 && (would_block(errno) || errno == EINTR) ? Seen::Nothing : Seen::End;
}

Channel::Read Channel::try_read(std::span<char> into) {
  if (!open()) return {};
  if (tls_) return try_read_tls(into);
  while (true) {
    const ssize_t got = ::recv(socket_.native_handle(), into.data(), into.size(), MSG_DONTWAIT);
    if (got > 0) return {.io = Io::Ok, .got = static_cast<std::size_t>(got)};
    if (got == 0) return {.io = Io::Closed, .eof = true};
    if (would_block(errno)) return {.io = Io::Ok};
    if (errno != EINTR) return {};
  }
}

Awaitable<Channel::Read> Channel::read_some(std::span<char> into, Duration limit) {
  if (!open()) co_return Read{};
  arm(limit, false);
  turns_ = 0;
  const auto [error, got] =
      co_await socket_.async_read_some(boost::asio::buffer(into.data(), into.size()), kAwait);
  const bool eof = error == boost::asio::error::eof;
  const Io io = finish(error);
  co_return Read{.io = io, .got = got, .eof = eof};
}

bool Channel::must_make_way() {
  if (++turns_ < kTurnsMax) return false;
  turns_ = 0;
  return true;
}

Awaitable<void> Channel::make_way() { co_await boost::asio::post(socket_.get_executor(), kAwait); }

void Channel::try_write(std::string_view bytes) {
  if (!open()) return;
  if (tls_) {
    tls_->write(bytes);
  } else {
    ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

// What is small goes out together, as one record.
Awaitable<Io> Channel::write_tls(Parts parts, Duration stall) {
  std::string record;
  for (auto part = parts.begin(); part != parts.end();) {
    const std::size_t taken = std::min(part->size(), kRecordMax - record.size());
    record.append(part->substr(0, taken));
    part->remove_prefix(taken);
    if (part->empty()) ++part;
    if (record.size() < kRecordMax && part != parts.end()) continue;
    while (!record.empty()) {
      if (!open()) co_return timed_out_ ? Io::TimedOut : Io::Closed;
      const TlsSession::Outcome outcome = tls_->write(record);
      if (outcome == TlsSession::Outcome::Done) {
        record.clear();
        break;
      }
      if (outcome == TlsSession::Outcome::End || outcome == TlsSession::Outcome::Broken) {
        co_return Io::Closed;
      }
      const Io io = co_await wait_for(outcome, stall);
      if (io != Io::Ok) {
        close();
        co_return io;
      }
    }
    if (must_make_way()) co_await make_way();
  }
  co_return Io::Ok;
}

std::optional<Io> Channel::write_now(Parts& parts) {
  if (tls_) return std::nullopt;
  while (true) {
    std::array<iovec, std::tuple_size_v<Parts>> vectors;
    std::size_t count = 0;
    for (const std::string_view part : parts) {
      // sendmsg does not write through iov_base.
      if (!part.empty())
        vectors[count++] = {.iov_base = const_cast<char*>(part.data()), .iov_len = part.size()};
    }
    if (count == 0) return Io::Ok;
    if (!open()) return timed_out_ ? Io::TimedOut : Io::Closed;
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && would_block(errno)) return std::nullopt;
    if (sent < 0) return Io::Closed;
    auto left = static_cast<std::size_t>(sent);
    for (std::string_view& part : parts) {
      const std::size_t taken = std::min(left, part.size());
      part.remove_prefix(taken);
      left -= taken;
    }
  }
}

Awaitable<Io> Channel::write(Parts parts, Duration stall) {
  if (tls_) co_return co_await write_tls(parts, stall);
  while (true) {
    const std::optional<Io> done = write_now(parts);
    if (done && *done != Io::Ok) co_return *done;
    if (done) break;
    const Io io = co_await wait(boost::asio::socket_base::wait_write, stall);
    if (io != Io::Ok) {
      close();
      co_return io;
    }
  }
  if (must_make_way()) co_await make_way();
  co_return Io::Ok;
}

}  // namespace flotilla::http
