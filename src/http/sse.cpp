#include "http/sse.h"

#include <algorithm>

namespace flotilla::http {
namespace {

constexpr std::size_t kBlockMax = 1 << 20;

}  // namespace

Headers event_stream_headers() {
  return {{"Content-Type", "text/event-stream"},
          {"Cache-Control", "no-cache"},
          {"X-Accel-Buffering", "no"}};
}

std::string sse_event(std::string_view json, std::string_view name) {
  std::string out;
  out.reserve(json.size() + name.size() + 16);
  if (!name.empty()) out.append("event: ").append(name).append("\n");
  out.append("data: ").append(json).append("\n\n");
  return out;
}

std::string sse_comment(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 4);
  out.append(": ").append(text).append("\n\n");
  return out;
}

// A block ends after a line of nothing; lines end with LF or CRLF, which may mix. Whole blocks
// inside `bytes` are handed out in place; only a part of a block is copied.
bool SseSplitter::feed(std::string_view bytes,
                       const std::function<void(std::string_view block)>& on_block) {
  const bool joined = !buffer_.empty();
  if (joined) buffer_.append(bytes);
  const std::string_view text = joined ? std::string_view(buffer_) : bytes;
  std::size_t block = 0;        // begin of the block being read
  std::size_t line = line_;     // begin of the line being read
  std::size_t from = scanned_;  // no LF in [line, from)
  bool fits = true;
  while (true) {
    const std::size_t lf = text.find('\n', from);
    if (lf == std::string_view::npos) break;
    const std::string_view content = text.substr(line, lf - line);
    line = from = lf + 1;
    if (!content.empty() && content != "\r") continue;
    if (line - block > kBlockMax) fits = false;
    if (!fits) break;
    on_block(text.substr(block, line - block));
    block = line;
  }
  if (!fits || text.size() - block > kBlockMax) return false;
  if (joined) {
    buffer_.erase(0, block);
  } else {
    buffer_.assign(text.substr(block));
  }
  line_ = line - block;
  scanned_ = buffer_.size();
  return true;
}

std::string sse_data(std::string_view block) {
  std::string out;
  bool first = true;
  while (!block.empty()) {
    std::string_view line = block.substr(0, block.find('\n'));
    block.remove_prefix(std::min(block.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with("data")) continue;
    line.remove_prefix(4);
    if (line.empty()) {
      // "data" alone is a line of nothing
    } else if (line.front() == ':') {
      line.remove_prefix(1);
      if (line.starts_with(' ')) line.remove_prefix(1);
    } else {
      continue;
    }
    if (!first) out.push_back('\n');
    first = false;
    out.append(line);
  }
  return out;
}

}  // namespace flotilla::http
