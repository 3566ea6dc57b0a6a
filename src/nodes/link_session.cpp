#include "nodes/link_session.h"

#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "nodes/child_end.h"

namespace flotilla::nodes {
namespace {

using namespace boost::asio::experimental::awaitable_operators;
using boost::asio::steady_timer;

constexpr std::size_t kQueueMax = std::size_t{4} << 20;
constexpr std::size_t kLineMax = 1000;
constexpr std::size_t kLinesMax = 16;
constexpr std::chrono::milliseconds kLastWords{300};
constexpr int kGreeting = 3;  // times the silence that ends a link: a busy machine starts slowly

}  // namespace

LinkSession::LinkSession(Options options, platform::Process process)
    : options_(std::move(options)),
      process_(std::move(process)),
      in_(options_.executor, process_.in.release()),
      out_(options_.executor, process_.out.release()),
      err_(options_.executor, process_.err.release()),
      queued_(options_.executor, steady_timer::time_point::max()),
      cut_(options_.executor, steady_timer::time_point::max()),
      log_ended_(options_.executor, steady_timer::time_point::max()),
      heard_(options_.clock->now()) {}

// Whichever of the five ends first ends the others, and all have ended when this returns.
Awaitable<std::string> LinkSession::run() {
  const auto first =
      co_await (read_frames() || write_frames() || read_log() || beat() || wait_for_cut());
  std::string reason = std::visit([](const std::string& text) { return text; }, first);
  co_return reason;
}

void LinkSession::send(std::string frame) {
  if (queue_bytes_ + frame.size() > kQueueMax)
    return cut("the agent does not read what it is sent");
  queue_bytes_ += frame.size();
  queue_.push_back(std::move(frame));
  queued_.cancel();
}

void LinkSession::cut(std::string reason) {
  if (!cut_reason_.empty()) return;
  cut_reason_ = std::move(reason);
  cut_.cancel();
}

Awaitable<std::string> LinkSession::wait_for_cut() {
  while (cut_reason_.empty()) co_await cut_.async_wait(kAwait);
  co_return cut_reason_;
}

Awaitable<std::string> LinkSession::read_frames() {
  std::array<char, 16384> chunk{};
  api::FrameReader frames;
  for (;;) {
    const auto [error, count] = co_await out_.async_read_some(boost::asio::buffer(chunk), kAwait);
    if (error) break;
    heard_ = options_.clock->now();
    frames.feed(std::string_view(chunk.data(), count));
    for (;;) {
      auto frame = frames.next();
      if (!frame)
        co_return fmt::format(
            "the agent sends no frames: {}; let the start files of its shell print nothing where "
            "it is not interactive (`ssh HOST true` must print nothing)",
            frame.error().message);
      if (!*frame) break;
      std::string trouble = take(**frame);
      if (!trouble.empty()) co_return trouble;
    }
  }
  std::string reason = co_await ended();
  co_return reason;
}

// What is wrong with the frame; empty: nothing.
std::string LinkSession::take(const std::string& frame) {
  auto event = api::parse_event(frame);
  if (!event && event.error().code == Code::NotFound) return {};  // of a newer agent
  if (!event) return "the agent sends frames that cannot be read: " + event.error().message;
  if (const auto* beat = std::get_if<api::Heartbeat>(&*event)) {
    heard_unix_ms_ = beat->sent_unix_ms;
    if (beat->echo_unix_ms != 0)
      round_trip_ms_ = static_cast<double>(options_.clock->unix_ms() - beat->echo_unix_ms);
    return {};
  }
  greeted_ = true;
  options_.on_event(std::move(*event));
  return {};
}

Awaitable<std::string> LinkSession::write_frames() {
  for (;;) {
    while (queue_.empty()) co_await queued_.async_wait(kAwait);
    const std::string frame = std::move(queue_.front());
    queue_.pop_front();
    const auto [error, count] =
        co_await boost::asio::async_write(in_, boost::asio::buffer(frame), kAwait);
    queue_bytes_ -= frame.size();
    if (error) break;
  }
  // A broken pipe: the reader sees the end, and before it whatever the agent still said.
  std::string reason = co_await wait_for_cut();
  co_return reason;
}

// The agent's log goes to ours; its last line says why it ended. Its end is not the session's.
Awaitable<std::string> LinkSession::read_log() {
  std::array<char, 4096> chunk{};
  std::string line;
  for (;;) {
    const auto [error, count] = co_await err_.async_read_some(boost::asio::buffer(chunk), kAwait);
    if (error) break;
    for (const char c : std::string_view(chunk.data(), count)) {
      if (c != '\n' && line.size() < kLineMax) line += c;
      if (c != '\n' || line.empty()) continue;
      log::info("node {}: {}", options_.name, line);
      last_lines_.push_back(std::exchange(line, {}));
      if (last_lines_.size() > kLinesMax) last_lines_.erase(last_lines_.begin());
    }
  }
  log_over_ = true;
  log_ended_.cancel();
  std::string reason = co_await wait_for_cut();
  co_return reason;
}

Awaitable<std::string> LinkSession::beat() {
  steady_timer timer(options_.executor);
  const Instant begin = options_.clock->now();
  for (;;) {
    const api::AgentCommand beat = api::Heartbeat{options_.clock->unix_ms(), heard_unix_ms_};
    if (auto frame = api::encode_frame(beat)) send(std::move(*frame));
    timer.expires_after(options_.heartbeat);
    co_await timer.async_wait(kAwait);
    const Instant now = options_.clock->now();
    if (!greeted_) {
      if (now - begin >= kGreeting * options_.dead_after)
        co_return "it does not answer as an agent";
      continue;
    }
    const Duration silent = now - heard_;
    if (silent >= options_.dead_after)
      co_return fmt::format("nothing heard from the agent for {:.1f} s", to_s(silent));
  }
}

// Its last words on stderr may come a moment after the end of its stdout.
Awaitable<std::string> LinkSession::ended() {
  if (!log_over_) {
    log_ended_.expires_after(kLastWords);
    co_await log_ended_.async_wait(kAwait);
  }
  const auto status = process_.poll();
  std::string reason = "the agent ended";
  if (status) reason += fmt::format(" ({})", platform::describe(*status));
  if (!last_lines_.empty()) reason += ": " + last_lines_.back();
  const std::string remedy = options_.remedy ? options_.remedy(last_lines_) : std::string();
  if (!remedy.empty()) reason += "; " + remedy;
  co_return reason;
}

void LinkSession::close_pipes() {
  boost::system::error_code ignored;
  in_.close(ignored);
  out_.close(ignored);
  err_.close(ignored);
}

Awaitable<void> LinkSession::end_process(std::chrono::milliseconds limit) {
  close_pipes();
  co_await end_child(options_.executor, process_, limit);
}

void LinkSession::release_process() {
  close_pipes();
  process_.release();
}

}  // namespace flotilla::nodes
