#include "nodes/ssh_forward.h"

#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
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
// Any answer to it will do.
constexpr std::string_view kQuestion =
    "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
constexpr std::chrono::seconds kPatience{5};  // silence is for the watchdog to judge
constexpr int kClosings = 5;

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
  Awaitable<bool> is_carried();
  Awaitable<void> wait_carried();
  void take_error(std::string line);
  std::string forbidden() const;
  void remove_socket() const;

  const Options options;
  steady_timer closed_timer;  // cancelled by close
  steady_timer changed;       // cancelled when `open` or `closed` changes
  bool open = false;          // the socket here accepts
  bool carried = false;       // and what connects gets to the other end
  bool closed = false;
  bool told_forbidden = false;
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
      open = carried = false;
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
      if (c == '\n' && !line.empty()) take_error(std::exchange(line, {}));
    }
  }
}

void SshForward::State::take_error(std::string line) {
  last_line = std::move(line);
  if (closed || last_line.find("administratively prohibited") == std::string::npos) return;
  if (!std::exchange(told_forbidden, true) && options.on_forbidden)
    options.on_forbidden(forbidden());
}

std::string SshForward::State::forbidden() const {
  return fmt::format("its sshd closes what is forwarded to it{}; {}",
                     last_line.empty() ? "" : fmt::format(" ({})", last_line), options.remedy);
}

Awaitable<void> SshForward::State::wait_closed() {
  while (!closed) co_await closed_timer.async_wait(kAwait);
}

// Until it is open or closed.
Awaitable<void> SshForward::State::wait_decided() {
  while (!open && !closed) co_await changed.async_wait(kAwait);
}

// Whether a connection is not closed before anything came: one that stays silent is carried.
Awaitable<bool> SshForward::State::is_carried() {
  using boost::asio::local::stream_protocol;
  stream_protocol::socket socket(options.executor);
  const stream_protocol::endpoint there(options.socket);
  const auto [refused] = co_await socket.async_connect(there, kAwait);
  if (refused) co_return false;
  const auto [broken, written] =
      co_await boost::asio::async_write(socket, boost::asio::buffer(kQuestion), kAwait);
  if (broken) co_return false;
  std::array<char, 256> chunk{};
  steady_timer patience(options.executor, kPatience);
  const auto first = co_await (socket.async_read_some(boost::asio::buffer(chunk), kAwait) ||
                               patience.async_wait(kAwait));
  if (first.index() == 1) co_return !std::get<0>(std::get<1>(first));  // else we are cancelled
  co_return !std::get<0>(std::get<0>(first));
}

// Until it is carried, it is closed, or so many connections were closed that all will be.
Awaitable<void> SshForward::State::wait_carried() {
  steady_timer pause(options.executor);
  for (int closings = 0; !carried && !closed && closings < kClosings;) {
    co_await wait_decided();
    const bool now = co_await is_carried();
    carried = now && open;
    if (carried || closed) co_return;
    if (!open) continue;  // its ssh ended meanwhile
    ++closings;
    pause.expires_after(options.try_again);
    co_await pause.async_wait(kAwait);
  }
}

SshForward::SshForward(Options options) : state_(std::make_shared<State>(std::move(options))) {
  boost::asio::co_spawn(state_->options.executor, state_->run(), boost::asio::detached);
}

SshForward::~SshForward() {
  state_->closed = true;
  state_->open = state_->carried = false;
  state_->closed_timer.cancel();
  state_->changed.cancel();
}

const std::string& SshForward::socket() const { return state_->options.socket; }

bool SshForward::is_open() const { return state_->carried; }

Task<void> SshForward::wait_open(std::chrono::milliseconds limit) {
  const auto state = state_;
  steady_timer deadline(state->options.executor, limit);
  const auto first = co_await (state->wait_carried() || deadline.async_wait(kAwait));
  if (state->closed) co_return fail(Code::NotFound, "the forward was closed");
  if (state->carried) co_return Result<void>{};
  if (first.index() == 0) co_return fail(Code::Unavailable, state->forbidden());
  co_return fail(Code::DeadlineExceeded,
                 fmt::format("its socket cannot be reached through ssh: {}",
                             state->last_line.empty() ? "no answer" : state->last_line));
}

}  // namespace flotilla::nodes
