#include "agent/gateway_link.h"

#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

namespace flotilla::agent {
namespace {

using namespace boost::asio::experimental::awaitable_operators;
using boost::asio::steady_timer;

constexpr std::size_t kQueueMax = std::size_t{4} << 20;

}  // namespace

GatewayLink::GatewayLink(Options options, platform::Fd in, platform::Fd out)
    : options_(std::move(options)),
      in_(options_.executor, in.release()),
      out_(options_.executor, out.release()),
      queued_(options_.executor, steady_timer::time_point::max()),
      cut_(options_.executor, steady_timer::time_point::max()),
      heard_(options_.clock->now()) {}

Awaitable<std::string> GatewayLink::run() {
  const auto first = co_await (read_frames() || write_frames() || beat() || wait_for_cut());
  std::string reason = std::visit([](const std::string& text) { return text; }, first);
  co_return reason;
}

void GatewayLink::send(const api::AgentEvent& event) {
  std::string frame = api::encode_frame(event);
  if (queue_bytes_ + frame.size() > kQueueMax) return cut("the gateway does not read");
  queue_bytes_ += frame.size();
  queue_.push_back(std::move(frame));
  queued_.cancel();
}

void GatewayLink::cut(std::string reason) {
  if (!cut_reason_.empty()) return;
  cut_reason_ = std::move(reason);
  cut_.cancel();
}

Awaitable<std::string> GatewayLink::wait_for_cut() {
  while (cut_reason_.empty()) co_await cut_.async_wait(kAwait);
  co_return cut_reason_;
}

Awaitable<std::string> GatewayLink::read_frames() {
  std::array<char, 16384> chunk{};
  api::FrameReader frames;
  for (;;) {
    const auto [error, count] = co_await in_.async_read_some(boost::asio::buffer(chunk), kAwait);
    if (error) co_return "the gateway's pipe closed";
    heard_ = options_.clock->now();
    frames.feed(std::string_view(chunk.data(), count));
    for (;;) {
      auto frame = frames.next();
      if (!frame) co_return frame.error().message;
      if (!*frame) break;
      auto command = api::parse_command(**frame);
      if (!command && command.error().code == Code::NotFound) continue;  // of a newer gateway
      if (!command) co_return "a frame that cannot be read: " + command.error().message;
      if (const auto* beat = std::get_if<api::Heartbeat>(&*command)) {
        heard_unix_ms_ = beat->sent_unix_ms;
        send(api::Heartbeat{options_.clock->unix_ms(), heard_unix_ms_});
      } else {
        options_.on_command(std::move(*command));
      }
    }
  }
}

// False: the pipe is broken.
Awaitable<bool> GatewayLink::write_queue() {
  while (!queue_.empty()) {
    const std::string frame = std::move(queue_.front());
    queue_.pop_front();
    const auto [error, count] =
        co_await boost::asio::async_write(out_, boost::asio::buffer(frame), kAwait);
    queue_bytes_ -= frame.size();
    if (error) co_return false;
  }
  co_return true;
}

Awaitable<std::string> GatewayLink::write_frames() {
  for (;;) {
    // g++ 12 destroys the frame twice when this is the loop's condition.
    const bool whole = co_await write_queue();
    if (!whole) break;
    if (queue_.empty()) co_await queued_.async_wait(kAwait);
  }
  co_return "the gateway's pipe broke";
}

// Answers to the gateway's own beats measure the round trip; ours only say that we live, also to a
// gateway that is silent.
Awaitable<std::string> GatewayLink::beat() {
  steady_timer timer(options_.executor);
  for (;;) {
    timer.expires_after(options_.heartbeat);
    co_await timer.async_wait(kAwait);
    const Duration silent = options_.clock->now() - heard_;
    if (silent >= options_.dead_after)
      co_return fmt::format("nothing heard from the gateway for {:.1f} s", to_s(silent));
    send(api::Heartbeat{options_.clock->unix_ms(), 0});
  }
}

Awaitable<void> GatewayLink::flush(std::chrono::milliseconds limit) {
  steady_timer deadline(options_.executor, limit);
  co_await (write_queue() || deadline.async_wait(kAwait));
}

}  // namespace flotilla::agent
