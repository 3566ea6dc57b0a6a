#include "http/exchange.h"

#include <array>
#include <charconv>
#include <ctime>
#include <optional>
#include <poll.h>

#include <boost/asio/post.hpp>

#include "base/check.h"

namespace flotilla::http {
namespace {

bool has_body(int status) { return status >= 200 && status != 204 && status != 304; }

bool is_ours(std::string_view name) {
  // How the message ends and whether the connection lives is ours to say.
  Headers one{{std::string(name), ""}};
  for (const std::string_view ours :
       {"Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive"}) {
    if (one.find(ours)) return true;
  }
  return false;
}

std::string_view date_value(ServerCore& core) {
  const std::int64_t second = SystemClock().unix_ms() / 1000;
  if (second != core.date_s) {
    const auto time = static_cast<std::time_t>(second);
    std::tm parts{};
    gmtime_r(&time, &parts);
    std::array<char, 64> text;
    const std::size_t size =
        std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    core.date.assign(text.data(), size);
    core.date_s = second;
  }
  return core.date;
}

// The line before a chunk.
std::string chunk_size(std::string_view bytes) {
  std::array<char, 2 * sizeof(std::size_t)> digits;
  const auto written =
      std::to_chars(digits.data(), digits.data() + digits.size(), bytes.size(), 16);
  std::string line(digits.data(), written.ptr);
  line += "\r\n";
  return line;
}

}  // namespace

Response ServerCore::error(int status, std::string_view message, std::string_view path) const {
  Response response{.status = status,
                    .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
                    .body = std::string(message) + "\n"};
  if (options.error_response) response = options.error_response(status, message, path);
  // Too much of something.
  if (status == 429 || status == 503) response.headers.set("Retry-After", "1");
  return response;
}

std::string ServerCore::last_words(int status, std::string_view message,
                                   std::string_view path) const {
  const Response response = error(status, message, path);
  std::string out =
      "HTTP/1.1 " + std::to_string(status) + " " + std::string(reason_phrase(status)) + "\r\n";
  for (const auto& [name, value] : response.headers.fields()) append_field(out, name, value);
  append_field(out, "Content-Length", std::to_string(response.body.size()));
  append_field(out, "Connection", "close");
  return out + "\r\n" + response.body;
}

ServerExchange::ServerExchange(std::shared_ptr<ServerCore> core, std::shared_ptr<Channel> channel,
                               RequestHead head)
    : core_(std::move(core)),
      channel_(std::move(channel)),
      head_(std::move(head)),
      bodiless_(head_.request.method == "HEAD"),
      keep_alive_(head_.keep_alive && !head_.http_1_0) {}

std::string ServerExchange::make_head(int status, const Headers& headers, Framing framing,
                                      std::size_t length) {
  const auto connection = headers.find("Connection");
  if (core_->draining || framing == Framing::UntilClose || connection == "close") {
    keep_alive_ = false;
  }
  std::string out;
  out.reserve(512);
  out.append("HTTP/1.1 ").append(std::to_string(status)).append(" ");
  out.append(reason_phrase(status)).append("\r\n");
  for (const auto& [name, value] : headers.fields()) {
    if (!is_ours(name)) append_field(out, name, value);
  }
  if (core_->options.request_id && !headers.find("X-Request-Id"))
    append_field(out, "X-Request-Id", core_->options.request_id());
  if (!headers.find("Date")) append_field(out, "Date", date_value(*core_));
  if (has_body(status)) {
    if (framing == Framing::Length) append_field(out, "Content-Length", std::to_string(length));
    if (framing == Framing::Chunked) append_field(out, "Transfer-Encoding", "chunked");
  }
  if (!keep_alive_) append_field(out, "Connection", "close");
  out.append("\r\n");
  return out;
}

Awaitable<bool> ServerExchange::send(Channel::Parts parts) {
  if (!may_send()) co_return false;
  const Io io = co_await channel_->write(parts, core_->options.write_stall);
  co_return took(io);
}

// Whether the client took what was written; who did not is gone.
bool ServerExchange::took(Io io) {
  if (io == Io::Ok) return true;
  if (!std::exchange(gone_, true)) call_on_gone_soon();
  return false;
}

Awaitable<bool> ServerExchange::respond(Response response) {
  CHECK(!started_);
  if (!may_send()) co_return false;
  started_ = finished_ = true;
  const std::string head =
      make_head(response.status, response.headers, Framing::Length, response.body.size());
  const bool body = has_body(response.status) && !bodiless_;
  const Channel::Parts parts{head, body ? std::string_view(response.body) : "", ""};
  co_return co_await send(parts);
}

Awaitable<bool> ServerExchange::start(int status, Headers headers, std::string_view first) {
  CHECK(!started_);
  if (!may_send()) co_return false;
  started_ = true;
  chunked_ = !head_.http_1_0;
  no_body_ = bodiless_ || !has_body(status);
  std::string head =
      make_head(status, headers, chunked_ ? Framing::Chunked : Framing::UntilClose, 0);
  if (no_body_ || first.empty()) {
    const Channel::Parts parts{head, "", ""};
    co_return co_await send(parts);
  }
  if (chunked_) head += chunk_size(first);
  const Channel::Parts parts{head, first, chunked_ ? "\r\n" : ""};
  co_return co_await send(parts);
}

Awaitable<bool> ServerExchange::write(std::string_view bytes) {
  CHECK(started_ && !finished_);
  if (bytes.empty() || no_body_ || !may_send()) co_return may_send();
  // What send() does, without the frames of coroutines that wait for nothing: this is what streams
  // do.
  const std::string size = chunked_ ? chunk_size(bytes) : std::string();
  Channel::Parts parts{size, bytes, chunked_ ? "\r\n" : ""};
  const std::optional<Io> done = channel_->write_now(parts);
  if (!done) {
    const Io io = co_await channel_->write(parts, core_->options.write_stall);
    co_return took(io);
  }
  if (*done == Io::Ok && channel_->must_make_way()) co_await channel_->make_way();
  co_return took(*done);
}

Awaitable<bool> ServerExchange::finish(std::string_view last) {
  CHECK(started_ && !finished_);
  if (!may_send()) co_return false;
  finished_ = true;
  if (no_body_) co_return true;
  if (!chunked_) {
    const Channel::Parts parts{last, "", ""};
    co_return co_await send(parts);
  }
  const std::string size = last.empty() ? std::string() : chunk_size(last);
  const Channel::Parts parts{size, last, last.empty() ? "0\r\n\r\n" : "\r\n0\r\n\r\n"};
  co_return co_await send(parts);
}

void ServerExchange::abort() {
  // Without chunks only a reset shows that the answer is not whole.
  boost::system::error_code ignored;
  if (started_ && !chunked_) {
    channel_->socket().set_option(boost::asio::socket_base::linger(true, 0), ignored);
  }
  channel_->close();
}

void ServerExchange::on_client_gone(std::function<void()> callback) {
  CHECK(!on_gone_);
  on_gone_ = std::move(callback);
  if (!gone_) return;
  call_on_gone_soon();
}

// Not from within the caller; and not once the handler, whose objects it uses, is over.
void ServerExchange::call_on_gone_soon() {
  boost::asio::post(channel_->socket().get_executor(), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && self->on_gone_) std::exchange(self->on_gone_, nullptr)();
  });
}

void ServerExchange::lose_client() {
  if (gone_) return;
  gone_ = true;
  if (on_gone_) std::exchange(on_gone_, nullptr)();
}

void ServerExchange::watch(bool pipelined) {
  if (pipelined || channel_->pending()) return watch_errors();
  channel_->socket().async_wait(boost::asio::socket_base::wait_read,
                                [weak = weak_from_this()](const boost::system::error_code& error) {
                                  const auto self = weak.lock();
                                  if (self && !error) self->on_readable();
                                });
}

void ServerExchange::on_readable() {
  if (!channel_->open()) return;
  switch (channel_->look()) {
    case Channel::Seen::Bytes: return watch_errors();
    case Channel::Seen::Nothing: return watch(false);
    case Channel::Seen::End: return lose_client();
  }
}

// With bytes of the next request waiting, the client's end is behind them; a reset still shows.
void ServerExchange::watch_errors() {
  channel_->socket().async_wait(boost::asio::socket_base::wait_error,
                                [weak = weak_from_this()](const boost::system::error_code& error) {
                                  const auto self = weak.lock();
                                  if (self && !error) self->on_error();
                                });
}

void ServerExchange::on_error() {
  if (!channel_->open()) return;
  pollfd state{.fd = channel_->socket().native_handle(), .events = 0, .revents = 0};
  if (::poll(&state, 1, 0) > 0 && (state.revents & (POLLERR | POLLHUP)) != 0) lose_client();
}

void ServerExchange::unwatch() {
  on_gone_ = nullptr;
  boost::system::error_code ignored;
  if (channel_->open()) channel_->socket().cancel(ignored);
}

}  // namespace flotilla::http
