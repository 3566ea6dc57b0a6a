#include "agent/hold.h"

#include <array>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "api/agent_frames.h"
#include "base/log.h"
#include "platform/files.h"
#include "platform/process.h"

namespace flotilla::agent {
namespace {

using namespace boost::asio::experimental::awaitable_operators;
using boost::asio::local::stream_protocol;
using boost::asio::posix::stream_descriptor;

constexpr std::chrono::seconds kFirstFrameLimit{5};

std::filesystem::path socket_of(const std::filesystem::path& socket_dir) {
  return socket_dir / "agent.sock";
}

// The lock says that whoever made them is gone.
void remove_sockets(const std::filesystem::path& socket_dir) {
  std::error_code failed;
  std::vector<std::filesystem::path> old;
  for (std::filesystem::directory_iterator at(socket_dir, failed), end; !failed && at != end;
       at.increment(failed))
    if (at->path().extension() == ".sock" || at->path().extension() == ".crumb")
      old.push_back(at->path());
  for (const auto& path : old) std::filesystem::remove(path, failed);
}

// The first frame's state id; nothing else may be in the stream yet: the other side waits for us.
Awaitable<std::optional<std::string>> read_state_id(stream_protocol::socket& socket) {
  std::array<char, 4096> chunk{};
  api::FrameReader frames;
  for (;;) {
    const auto [error, count] = co_await socket.async_read_some(boost::asio::buffer(chunk), kAwait);
    if (error) co_return std::nullopt;
    frames.feed(std::string_view(chunk.data(), count));
    const auto frame = frames.next();
    if (!frame) co_return std::nullopt;
    if (!*frame) continue;
    const auto command = api::parse_command(**frame);
    const auto* attach = command ? std::get_if<api::AttachAgent>(&*command) : nullptr;
    if (attach == nullptr) co_return std::nullopt;
    co_return attach->state_id;
  }
}

template <class From, class To>
Awaitable<void> copy(From& from, To& to) {
  std::array<char, 16384> chunk{};
  for (;;) {
    const auto [error, count] = co_await from.async_read_some(boost::asio::buffer(chunk), kAwait);
    if (error) co_return;
    const auto [broken, written] =
        co_await boost::asio::async_write(to, boost::asio::buffer(chunk.data(), count), kAwait);
    if (broken) co_return;
  }
}

}  // namespace

Hold::Hold(platform::FileLock lock, Acceptor acceptor, std::string state_id, std::string holder)
    : lock_(std::move(lock)),
      acceptor_(std::move(acceptor)),
      state_id_(std::move(state_id)),
      holder_(std::move(holder)) {}

Result<Hold> Hold::acquire(Executor executor, const std::filesystem::path& run_dir,
                           const std::filesystem::path& socket_dir, const std::string& state_id) {
  const std::string holder =
      fmt::format("the agent with pid {} of gateway {}", platform::own_pid(), state_id);
  auto lock = platform::FileLock::acquire(run_dir / "agent.lock", holder);
  if (!lock) return fail(lock.error());
  remove_sockets(socket_dir);
  const std::filesystem::path path = socket_of(socket_dir);
  Acceptor acceptor(executor);
  boost::system::error_code error;
  acceptor.open(stream_protocol(), error);
  if (!error) acceptor.bind(stream_protocol::endpoint(path.string()), error);
  if (!error) acceptor.listen(8, error);
  if (error)
    return fail(Code::Unavailable,
                fmt::format("cannot listen at {}: {}", path.string(), error.message()));
  return Hold(std::move(*lock), std::move(acceptor), state_id, holder);
}

Awaitable<std::optional<Hold::Attached>> Hold::next() {
  for (;;) {
    auto [error, socket] = co_await acceptor_.async_accept(kAwait);
    if (error == boost::asio::error::operation_aborted) co_return std::nullopt;
    boost::asio::steady_timer pause(acceptor_.get_executor());
    if (error) {  // out of descriptors, perhaps: not in a busy loop
      pause.expires_after(std::chrono::milliseconds(200));
      co_await pause.async_wait(kAwait);
      continue;
    }
    pause.expires_after(kFirstFrameLimit);
    const auto first = co_await (read_state_id(socket) || pause.async_wait(kAwait));
    const auto* state_id = std::get_if<0>(&first);
    if (state_id == nullptr || !*state_id) continue;
    if (**state_id != state_id_) {
      const std::string frame = api::encode_frame(api::AgentEvent{
          api::AgentRefused{fmt::format("this machine's run directory is held by {}; end that "
                                        "server, or take this node out of one of the two",
                                        holder_)}});
      pause.expires_after(kFirstFrameLimit);
      co_await (boost::asio::async_write(socket, boost::asio::buffer(frame), kAwait) ||
                pause.async_wait(kAwait));
      continue;
    }
    Attached attached;
    attached.in = platform::Fd(socket.release());
    attached.out = platform::duplicate(attached.in.get());
    co_return attached;
  }
}

void Hold::close() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

Awaitable<Result<void>> become_pipe(Executor executor, std::filesystem::path socket_dir,
                                    std::string state_id) {
  stream_protocol::socket socket(executor);
  const stream_protocol::endpoint endpoint(socket_of(socket_dir).string());
  const auto [refused] = co_await socket.async_connect(endpoint, kAwait);
  if (refused) co_return fail(Code::Unavailable, "no answer at its socket: " + refused.message());
  const auto hello = api::encode_frame(api::AgentCommand{api::AttachAgent{std::move(state_id)}});
  if (!hello) co_return fail(hello.error());
  const auto [broken, written] =
      co_await boost::asio::async_write(socket, boost::asio::buffer(*hello), kAwait);
  if (broken) co_return fail(Code::Unavailable, "no answer at its socket: " + broken.message());
  log::info("a pipe to the agent that runs already");
  stream_descriptor in(executor, platform::duplicate(0).release());
  stream_descriptor out(executor, platform::duplicate(1).release());
  co_await (copy(in, socket) || copy(socket, out));
  co_return Result<void>{};
}

}  // namespace flotilla::agent
