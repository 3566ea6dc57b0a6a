#include "http/connection.h"

#include <algorithm>
#include <array>
#include <exception>
#include <span>
#include <sys/socket.h>

#include <fmt/format.h>

#include "base/log_line.h"
#include "http/body_share.h"
#include "http/forwarded.h"

namespace flotilla::http {
namespace {

const SystemClock kClock;

constexpr std::size_t kHeadRead = 4 << 10;
constexpr std::size_t kBodyRead = 64 << 10;
constexpr std::size_t kChunksRead = 16 << 10;  // what follows may be the next request, to be kept
constexpr std::size_t kReservedFor = 16;       // when a sixteenth of a body is there
// A refused client may still be sending: its bytes are read and dropped for so long, since closing
// at once would reset the connection and take the answer with it.
constexpr Duration kLingerMax = std::chrono::seconds(10);
constexpr Duration kLingerIdle = std::chrono::seconds(2);

// Some clients end a body with a line end of their own.
constexpr int kEmptyLinesMax = 2;

constexpr int kLost = 0;  // as a HeadError's status: nobody is left to read an answer

HeadError too_large(std::int64_t max_bytes) {
  return {.status = 413,
          .message = "the request's body is larger than " + std::to_string(max_bytes) + " bytes"};
}

// A connection whose next request is not whole, or that only reads what nobody wants any more: what
// the server cuts when it has too many.
class Waiting {
 public:
  Waiting(ServerCore& core, Connection& connection) : core_(core), connection_(connection) {
    begin();
  }
  ~Waiting() { core_.waiting.erase(number_); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // It has come on: those that have not are cut before it.
  void renew() {
    if (core_.waiting.erase(number_) > 0) begin();
  }

 private:
  void begin() {
    number_ = ++core_.waits_begun;
    core_.waiting.emplace(number_, &connection_);
  }

  ServerCore& core_;
  Connection& connection_;
  std::uint64_t number_ = 0;
};

// A handshake under way, counted in the server. One too many cuts the oldest: who opens connections
// and says nothing must not keep others out.
class Handshake {
 public:
  Handshake(ServerCore& core, Connection& connection)
      : core_(core), number_(++core.handshakes_begun) {
    core_.handshakes.emplace(number_, &connection);
    if (core_.handshakes.size() <= static_cast<std::size_t>(core_.options.handshakes_max)) return;
    Connection* oldest = core_.handshakes.begin()->second;
    core_.handshakes.erase(core_.handshakes.begin());
    oldest->cut();
  }
  ~Handshake() { core_.handshakes.erase(number_); }
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

 private:
  ServerCore& core_;
  const std::uint64_t number_;
};

// All connections read into it, and keep of it what they were sent.
std::span<char> read_buffer() {
  thread_local std::array<char, kBodyRead> buffer;
  return buffer;
}

// A TLS client's first byte is the type of its first record; a request in the clear begins with the
// letter of a method.
bool speaks_plain_http(Channel& channel) {
  char byte = 0;
  const int socket = channel.socket().native_handle();
  return ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && byte >= 'A' && byte <= 'Z';
}

}  // namespace

Connection::Connection(std::shared_ptr<ServerCore> core, Socket socket, Peer peer)
    : core_(std::move(core)),
      channel_(std::make_shared<Channel>(std::move(socket))),
      peer_(std::move(peer)) {}

Connection::~Connection() = default;

bool ServerCore::cut_oldest_waiting(const std::string& network) {
  const auto oldest = std::ranges::find_if(waiting, [&network](const auto& one) {
    return network.empty() || one.second->peer().network == network;
  });
  if (oldest == waiting.end()) return false;
  Connection* connection = oldest->second;
  waiting.erase(oldest);
  connection->give_way();
  return true;
}

void Connection::cut() {
  channel_->close();
  if (exchange_) exchange_->cut();
}

void Connection::give_way() {
  if (body_for_) {
    channel_->try_write(core_->last_words(
        408, "the request's body did not come on while others waited for a connection",
        *body_for_));
    channel_->shut_write();
  }
  cut();
}

Awaitable<bool> Connection::begin_tls() {
  const Handshake counted(*core_, *this);
  const Waiting waits(*core_, *this);
  const Instant deadline = kClock.now() + core_->options.handshake_timeout;
  const Io begun = co_await channel_->wait_readable(deadline - kClock.now());
  if (begun != Io::Ok) co_return false;
  idle_ = false;
  if (speaks_plain_http(*channel_)) {
    HeadError error{.status = 400, .message = "this port speaks TLS; use https:// to reach it"};
    co_await refuse(std::move(error), std::string());
    co_return false;
  }
  const Io done = co_await channel_->accept_tls(peer_.tls, deadline - kClock.now());
  co_return done == Io::Ok;
}

Awaitable<void> Connection::serve() {
  if (peer_.tls) {
    const bool secure = co_await begin_tls();
    if (!secure) channel_->close();
  }
  while (channel_->open()) {
    RequestHead head;
    const bool whole = co_await read_request(head);
    if (!whole) break;
    co_await answer(std::move(head));
    first_ = false;
    if (core_->draining) break;
  }
  if (channel_->open()) channel_->shut_write();
  channel_->close();
}

Awaitable<bool> Connection::read_request(RequestHead& head) {
  std::optional<Waiting> waits(std::in_place, *core_, *this);
  idle_ = in_.empty();
  const Duration idle = first_ ? core_->options.head_timeout : core_->options.idle_timeout;
  if (idle_) {
    const Io io = co_await channel_->wait_readable(idle);
    if (io != Io::Ok) co_return false;
  }
  idle_ = false;
  const bool have_head = co_await read_head(head);
  if (!have_head) co_return false;
  waits.reset();
  set_peer(head.request);
  co_return co_await read_body(head);
}

void Connection::set_peer(Request& request) const {
  Remote remote{.address = peer_.address, .by_tls = peer_.tls != nullptr};
  remote = find_remote(std::move(remote), request.headers, core_->options.trusted_proxies);
  request.peer = std::move(remote.address);
  request.peer_is_loopback = peer_.loopback && !remote.forwarded;
  request.by_tls = remote.by_tls;
}

// More bytes into in_, at most `bytes` of them. Who sends without a pause is held to the deadline,
// too, and keeps nobody waiting; who lets us wait has no buffer.
Awaitable<Io> Connection::fill(std::size_t bytes, Instant deadline) {
  while (true) {
    if (kClock.now() >= deadline) co_return Io::TimedOut;
    if (channel_->must_make_way()) co_await channel_->make_way();
    const std::span<char> into = read_buffer().first(bytes);
    const Channel::Read read = channel_->try_read(into);
    in_.append(into.data(), read.got);
    if (read.io != Io::Ok) co_return read.io;
    if (read.got > 0) co_return Io::Ok;
    in_.shrink_to_fit();
    const Io io = co_await channel_->wait_readable(deadline - kClock.now());
    if (io != Io::Ok) co_return io;
  }
}

Awaitable<bool> Connection::read_head(RequestHead& head) {
  const auto limit = static_cast<std::size_t>(core_->options.header_max_bytes);
  const Instant deadline = kClock.now() + core_->options.head_timeout;
  HeadScanner scanner;
  HeadError error;
  int empty_lines = 0;
  while (true) {
    while (scanner.untouched() && in_.starts_with("\r\n") && empty_lines < kEmptyLinesMax) {
      in_.erase(0, 2);
      ++empty_lines;
    }
    const bool begun = !in_.empty() && in_ != "\r";
    const auto state = begun ? scanner.scan(in_) : HeadScanner::State::More;
    const std::size_t size = state == HeadScanner::State::Whole ? scanner.size() : in_.size();
    if (state == HeadScanner::State::Malformed) {
      error = {.status = 400, .message = "the request is not valid HTTP/1.1"};
      break;
    }
    if (size > limit) {
      error = {.status = 431, .message = "the request's header is too large"};
      break;
    }
    if (state == HeadScanner::State::Whole) {
      auto parsed = parse_request_head(std::string_view(in_).substr(0, size));
      in_.erase(0, size);
      if (parsed) {
        head = std::move(*parsed);
        co_return true;
      }
      error = std::move(parsed).error();
      break;
    }
    const Io io = co_await fill(kHeadRead, deadline);
    if (io == Io::Closed) co_return false;
    if (io == Io::TimedOut) {
      error = {.status = 408, .message = "the request's header did not arrive in time"};
      break;
    }
  }
  co_await refuse(std::move(error), std::string());
  co_return false;
}

Awaitable<bool> Connection::read_body(RequestHead& head) {
  BodyDecoder decoder =
      head.chunked ? BodyDecoder::chunked() : BodyDecoder::length(head.content_length);
  if (decoder.state() == BodyDecoder::State::Done) co_return true;
  std::optional<BodyPermit> permit = co_await admit_body(head);
  if (!permit) co_return false;
  body_ = std::make_unique<BodyShare>(core_, head.request, std::move(permit->key));
  std::optional<HeadError> failed = check_length(head, *permit);
  if (!failed) {
    if (head.expect_continue && in_.empty()) {
      const Channel::Parts parts{"HTTP/1.1 100 Continue\r\n\r\n", "", ""};
      const Io io = co_await channel_->write(parts, core_->options.write_stall);
      if (io != Io::Ok) co_return false;
    }
    body_for_ = head.request.path();
    failed = co_await receive_body(decoder, head, *permit);
    body_for_.reset();
    if (!failed) co_return true;
  }
  // By a swap: assigning an empty string would keep the memory, which nobody counts any more, for
  // as long as the client goes on sending.
  std::string().swap(head.request.body);
  body_.reset();
  std::string path(head.request.path());
  if (failed->status != kLost) co_await refuse(std::move(*failed), std::move(path));
  co_return false;
}

// How large the body may be, and who counts it. None: it may not come, and that is said.
Awaitable<std::optional<BodyPermit>> Connection::admit_body(RequestHead& head) {
  BodyPermit permit{.bytes_max = core_->options.body_max_bytes};
  if (!core_->options.admit_body) co_return permit;
  RequestHead asked;
  asked.request = std::move(head.request);
  asked.keep_alive = false;
  const auto exchange = std::make_shared<ServerExchange>(core_, channel_, std::move(asked));
  permit = co_await core_->options.admit_body(*exchange);
  if (exchange->started()) {
    if (exchange->finished()) co_await linger();
    co_return std::nullopt;
  }
  head.request = exchange->take_request();
  head.request.sender = std::move(permit.sender);
  permit.bytes_max = std::min(permit.bytes_max, core_->options.body_max_bytes);
  co_return permit;
}

// By what the head says of it.
std::optional<HeadError> Connection::check_length(const RequestHead& head,
                                                  const BodyPermit& permit) {
  if (head.content_length > static_cast<std::uint64_t>(permit.bytes_max))
    return too_large(permit.bytes_max);
  const BodyShare::Room room = body_->expect(head.content_length);
  if (room != BodyShare::Room::There) return no_room(room, permit);
  return std::nullopt;
}

HeadError Connection::no_room(BodyShare::Room room, const BodyPermit& permit) const {
  if (room == BodyShare::Room::None) {
    return {.status = 503,
            .message =
                "the server holds as many bytes of request bodies as it may; send it again "
                "in a moment"};
  }
  return {.status = 429,
          .message = fmt::format("the bodies of this key's requests, from their heads to their "
                                 "answers, may have {} bytes together, and this one is more; send "
                                 "it again when another is answered",
                                 core_->options.bodies_max_bytes_of_key),
          .headers = permit.headers};
}

Awaitable<std::optional<HeadError>> Connection::receive_body(BodyDecoder& decoder,
                                                             RequestHead& head,
                                                             const BodyPermit& permit) {
  const auto limit = static_cast<std::size_t>(permit.bytes_max);
  std::string& body = head.request.body;
  const Instant begin = kClock.now();
  const Instant end = begin + core_->options.body_timeout;
  Instant deadline = std::min(end, begin + core_->options.body_pace);
  std::size_t paced = 0;  // so much had come when the deadline was last moved
  Waiting waits(*core_, *this);
  while (true) {
    const std::size_t taken = decoder.feed(in_, body, limit + 1 - body.size());
    in_.erase(0, taken);
    if (body.size() > limit) co_return too_large(permit.bytes_max);
    // What a text leaves behind as it grows is as large as itself. Who only says that it will be
    // large gets nothing.
    if (body.size() >= head.content_length / kReservedFor) body.reserve(head.content_length);
    const BodyShare::Room room = body_->hold(body.size());
    if (room != BodyShare::Room::There) co_return no_room(room, permit);
    if (decoder.state() == BodyDecoder::State::Done) co_return std::nullopt;
    if (decoder.state() == BodyDecoder::State::Malformed) {
      co_return HeadError{.status = 400, .message = "the request's chunks are malformed"};
    }
    if (body.size() - paced >= core_->options.body_pace_bytes) {
      paced = body.size();
      deadline = std::min(end, kClock.now() + core_->options.body_pace);
      waits.renew();
    }
    const std::size_t most =
        head.chunked ? kChunksRead
                     : std::min<std::size_t>(kBodyRead, head.content_length - body.size());
    const Io io = co_await fill(most, deadline);
    if (io == Io::Closed) co_return HeadError{.status = kLost, .message = {}};
    if (io == Io::TimedOut) {
      co_return HeadError{.status = 408, .message = "the request's body did not arrive in time"};
    }
  }
}

Awaitable<void> Connection::refuse(HeadError error, std::string path) {
  RequestHead head;
  head.keep_alive = false;
  const auto exchange = std::make_shared<ServerExchange>(core_, channel_, std::move(head));
  Response response = core_->error(error.status, error.message, path);
  for (const auto& [name, value] : error.headers.fields()) response.headers.set(name, value);
  const bool sent = co_await exchange->respond(std::move(response));
  if (sent) co_await linger();
}

Awaitable<void> Connection::linger() {
  if (core_->draining) co_return;
  idle_ = true;  // a shutdown need not wait for it
  channel_->shut_write();
  const Waiting waits(*core_, *this);
  const Instant deadline = kClock.now() + kLingerMax;
  while (true) {
    std::string().swap(in_);
    const Duration left = std::min<Duration>(deadline - kClock.now(), kLingerIdle);
    const Io io = co_await channel_->wait_readable(left);
    if (io != Io::Ok) break;
    const Io read = co_await fill(kBodyRead, deadline);
    if (read != Io::Ok) break;
  }
}

Awaitable<void> Connection::answer(RequestHead head) {
  in_.shrink_to_fit();  // an answer may take minutes
  exchange_ = std::make_shared<ServerExchange>(core_, channel_, std::move(head));
  const std::shared_ptr<ServerExchange> exchange = exchange_;
  exchange->watch(!in_.empty());
  std::string trouble;
  try {
    co_await core_->handler(*exchange);
  } catch (const std::exception& error) {
    trouble = fmt::format("handler failed: {}", error.what());
  } catch (...) {
    trouble = "handler failed";
  }
  const bool unanswered = !exchange->started() && !exchange->client_gone();
  if (trouble.empty() && unanswered) trouble = "handler returned without an answer";
  const std::string id =
      !trouble.empty() && core_->options.request_id ? core_->options.request_id() : "";
  if (!trouble.empty()) {
    const log::Fields whose = id.empty() ? log::Fields() : log::of_request(id);
    log::error(whose, "{}", trouble);
  }
  exchange->unwatch();
  exchange_.reset();
  body_.reset();
  if (unanswered) {
    exchange->close_after();
    Response response = core_->error(500, "internal error", exchange->request().path());
    if (!id.empty()) response.headers.set("X-Request-Id", id);
    co_await exchange->respond(std::move(response));
  }
  if (!exchange->finished()) {
    exchange->abort();
  } else if (!exchange->keep_alive() || exchange->client_gone()) {
    if (!in_.empty() && !exchange->client_gone()) co_await linger();
    if (channel_->open()) channel_->shut_write();
    channel_->close();
  }
}

}  // namespace flotilla::http
