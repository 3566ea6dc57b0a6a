#include "nodes/child_pipe.h"

#include <utility>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "nodes/child_end.h"
#include "nodes/child_lines.h"
#include "platform/files.h"

namespace flotilla::nodes {
namespace {

using namespace boost::asio::experimental::awaitable_operators;
using boost::asio::steady_timer;
using boost::asio::posix::stream_descriptor;

constexpr std::size_t kLinesMax = 16;
constexpr std::chrono::milliseconds kEnd{5000};

std::function<void(std::string)> keep_in(std::vector<std::string>& lines) {
  return [&lines](std::string line) {
    lines.push_back(std::move(line));
    if (lines.size() > kLinesMax) lines.erase(lines.begin());
  };
}

// Returns when nothing was said for that long; each word sets `timer` anew, which cancels the wait.
Awaitable<void> wait_for_silence(steady_timer& timer) {
  for (;;) {
    const auto [error] = co_await timer.async_wait(kAwait);
    const auto state = co_await boost::asio::this_coro::cancellation_state;
    if (!error || state.cancelled() != boost::asio::cancellation_type::none) co_return;
  }
}

}  // namespace

Task<ChildPipeEnd> run_pipe(Executor executor, ChildPipe pipe) {
  if (auto small = check_in_text(pipe.from_text); !small) co_return fail(small.error());
  auto from = platform::Process::spawn(pipe.from);
  if (!from) co_return fail(from.error());
  pipe.to.in_fd = from->out.get();
  auto to = platform::Process::spawn(pipe.to);
  if (!to) co_return fail(to.error());
  from->out.reset();  // theirs alone: its end is seen by the other
  platform::write_some(from->in, pipe.from_text);
  from->in.reset();

  ChildPipeEnd end;
  stream_descriptor from_err(executor, from->err.release());
  stream_descriptor to_out(executor, to->out.release());
  stream_descriptor to_err(executor, to->err.release());
  steady_timer silence(executor, pipe.silence);
  std::function<void(std::string)> line = [&](std::string text) {
    silence.expires_after(pipe.silence);
    pipe.on_line(std::move(text));
  };
  std::function<void(std::string)> keep_to = keep_in(end.to.err);
  std::function<void(std::string)> keep_from = keep_in(end.from.err);
  const auto first =
      co_await ((read_lines(to_out, std::move(line)) && read_lines(to_err, std::move(keep_to)) &&
                 read_lines(from_err, std::move(keep_from))) ||
                wait_for_silence(silence) || pipe.stop->wait());
  end.whole = first.index() == 0;
  const std::chrono::milliseconds limit = end.whole ? kEnd : std::chrono::milliseconds(0);
  co_await end_child(executor, *to, limit);
  co_await end_child(executor, *from, limit);
  const platform::ExitStatus unknown{.exit_code = -1, .signal = {}};
  end.from.status = from->poll().value_or(unknown);
  end.to.status = to->poll().value_or(unknown);
  co_return end;
}

}  // namespace flotilla::nodes
