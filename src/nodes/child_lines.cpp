#include "nodes/child_lines.h"

#include <array>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>

namespace flotilla::nodes {
namespace {

constexpr std::size_t kLineMax = 4096;

}  // namespace

Awaitable<void> read_lines(boost::asio::posix::stream_descriptor& from,
                           std::function<void(std::string line)> told) {
  std::array<char, 4096> chunk{};
  std::string line;
  for (;;) {
    const auto [error, count] = co_await from.async_read_some(boost::asio::buffer(chunk), kAwait);
    if (error) break;
    for (const char c : std::string_view(chunk.data(), count)) {
      if (c != '\n' && c != '\r' && line.size() < kLineMax) line += c;
      if (c == '\n' && !line.empty()) told(std::exchange(line, {}));
    }
  }
  if (!line.empty()) told(std::move(line));
}

}  // namespace flotilla::nodes
