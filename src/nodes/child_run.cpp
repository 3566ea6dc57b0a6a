#include "nodes/child_run.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "nodes/child_end.h"
#include "nodes/child_lines.h"
#include "platform/files.h"

namespace flotilla::nodes {
namespace {

using namespace boost::asio::experimental::awaitable_operators;
using boost::asio::steady_timer;
using boost::asio::posix::stream_descriptor;

constexpr std::size_t kOutMax = std::size_t{64} << 10;
constexpr std::size_t kLinesMax = 16;

Awaitable<void> read_out(stream_descriptor& from, ChildOutput& into) {
  std::array<char, 4096> chunk{};
  for (;;) {
    const auto [error, count] = co_await from.async_read_some(boost::asio::buffer(chunk), kAwait);
    if (error) co_return;
    const std::string_view bytes(chunk.data(), count);
    into.out += bytes.substr(0, kOutMax - std::min(kOutMax, into.out.size()));
  }
}

Awaitable<void> read_err(stream_descriptor& from, ChildOutput& into) {
  std::function<void(std::string)> keep = [&into](std::string line) {
    into.err.push_back(std::move(line));
    if (into.err.size() > kLinesMax) into.err.erase(into.err.begin());
  };
  co_await read_lines(from, std::move(keep));
}

}  // namespace

Result<void> check_in_text(const std::string& text) {
  if (text.size() <= kInTextMax) return {};
  return fail(Code::TooLarge, fmt::format("{} bytes are more than the {} that a program is told at "
                                          "its start",
                                          text.size(), kInTextMax));
}

std::string ChildOutput::failure() const {
  std::string text = platform::describe(status);
  if (!err.empty()) text += ": " + err.back();
  return text;
}

Task<ChildOutput> run_child(Executor executor, ChildRun run) {
  if (run.command.in_file.empty() && run.in_text.empty()) run.command.in = platform::Stdio::Null;
  if (auto small = check_in_text(run.in_text); !small) co_return fail(small.error());
  auto process = platform::Process::spawn(run.command);
  if (!process) co_return fail(process.error());
  if (!run.in_text.empty()) platform::write_some(process->in, run.in_text);
  process->in.reset();
  ChildOutput output;
  stream_descriptor out(executor, process->out.release());
  stream_descriptor err(executor, process->err.release());
  steady_timer deadline(executor, run.limit);
  Stop never(executor);
  Stop& stop = run.stop != nullptr ? *run.stop : never;
  const auto first = co_await ((read_out(out, output) && read_err(err, output)) ||
                               deadline.async_wait(kAwait) || stop.wait());
  const bool ended = first.index() == 0;
  co_await end_child(executor, *process, std::chrono::milliseconds(ended ? 5000 : 0));
  if (stop.asked()) co_return fail(Code::Cancelled, "it was cancelled");
  if (!ended)
    co_return fail(Code::DeadlineExceeded,
                   fmt::format("it took longer than {:.0f} s",
                               std::chrono::duration<double>(run.limit).count()));
  output.status = process->poll().value_or(platform::ExitStatus{.exit_code = -1, .signal = {}});
  co_return output;
}

}  // namespace flotilla::nodes
