#include "nodes/ssh_forward.h"

#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "nodes/child_end.h"

namespace flotilla::nodes {
namespace {

using namespace boost::asio::experimental::awaitable_operators;
using boost::asio::steady_timer;
using boost::asio::posix::stream_descriptor;

constexpr std::chrono::seconds kAgain{1};
constexpr std::size_t kLineMax = 500;

}  // namespace

// Shared by the handle, its coroutine and who waits, so that each may end last.
struct SshForward::State : std::enable_shared_from_this<SshForward::State> {
  explicit State(Options taken)
      : options(std::move(taken)),
        closed_timer(options.executor, steady_timer::time_point::max()),
        changed(options.executor, steady_timer::time_point::max()) {}

  Awaitable<void> run();
  Awaitable<void> run_once(platform::Process& process);
  Awaitable<void> read_output(stream_descriptor& out);
  Awaitable<void> read_errors(stream_descriptor& err);
  Awaitable<void> wait_closed();
  Awaitable<void> wait_decided();
  void remove_socket() const;

  const Options options;
  steady_timer closed_timer;  // cancelled by close
  steady_timer changed;       // cancelled when `open` or `closed` changes
  bool open = false;
  bool closed = false;
  std::string last_line;
};

void SshForward::State::remove_socket() const {
  std::error_code ignored;
  std::filesystem::remove(options.socket, ignored);
}

Awaitable<void> SshForward::State::run() {
  const auto self = shared_from_this();
  while (!closed) {
    remove_socket();
    auto process = platform::Process::spawn(options.command);
    if (process) {
      co_await run_once(*process);
      open = false;
      co_await end_child(options.executor, *process, std::chrono::milliseconds(0));
    } else {
      last_line = process.error().message;
    }
    if (closed) break;
    log::warning("{}: the forward ended: {}", options.name, last_line);
    steady_timer pause(options.executor, kAgain);
    co_await (pause.async_wait(kAwait) || wait_closed());
  }
  remove_socket();
}

Awaitable<void> SshForward::State::run_once(platform::Process& process) {
  // Its stdin stays open in `process` for as long as it is to live.
  stream_descriptor out(options.executor, process.out.release());
  stream_descriptor err(options.executor, process.err.release());
  co_await ((read_output(out) && read_errors(err)) || wait_closed());
}

// Anything it prints says that the socket accepts.
Awaitable<void> SshForward::State::read_output(stream_descriptor& out) {
  std::array<char, 256> chunk{};
  for (;;) {
    const auto [error, count] = co_await out.async_read_some(boost::asio::buffer(chunk), kAwait);
    if (error) co_return;
    if (std::exchange(open, true)) continue;
    changed.cancel();
  }
}

Awaitable<void> SshForward::State::read_errors(stream_descriptor& err) {
  std::array<char, 1024> chunk{};
  std::string line;
  for (;;) {
    const auto [error, count] = co_await err.async_read_some(boost::asio::buffer(chunk), kAwait);
    if (error) co_return;
    for (const char c : std::string_view(chunk.data(), count)) {
      if (c != '\n' && c != '\r' && line.size() < kLineMax) line += c;
      if (c == '\n' && !line.empty()) last_line = std::exchange(line, {});
    }
  }
}

Awaitable<void> SshForward::State::wait_closed() {
  while (!closed) co_await closed_timer.async_wait(kAwait);
}

// Until it is open or closed.
Awaitable<void> SshForward::State::wait_decided() {
  while (!open && !closed) co_await changed.async_wait(kAwait);
}

SshForward::SshForward(Options options) : state_(std::make_shared<State>(std::move(options))) {
  boost::asio::co_spawn(state_->options.executor, state_->run(), boost::asio::detached);
}

SshForward::~SshForward() {
  state_->closed = true;
  state_->open = false;
  state_->closed_timer.cancel();
  state_->changed.cancel();
}

const std::string& SshForward::socket() const { return state_->options.socket; }

bool SshForward::is_open() const { return state_->open; }

Task<void> SshForward::wait_open(std::chrono::milliseconds limit) {
  const auto state = state_;
  steady_timer deadline(state->options.executor, limit);
  co_await (state->wait_decided() || deadline.async_wait(kAwait));
  if (state->closed) co_return fail(Code::NotFound, "the forward was closed");
  if (state->open) co_return Result<void>{};
  co_return fail(Code::DeadlineExceeded,
                 fmt::format("its socket cannot be reached through ssh: {}",
                             state->last_line.empty() ? "no answer" : state->last_line));
}

}  // namespace flotilla::nodes
