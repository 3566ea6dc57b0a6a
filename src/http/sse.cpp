#include "http/sse.h"

#include <algorithm>

namespace flotilla::http {
namespace {

constexpr std::size_t kBlockMax = 1 << 20;

bool is_blank(std::string_view line) { return line.empty() || line == "\r"; }

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
// inside `bytes` are handed out in place; only what is cut by a border is copied.
bool SseSplitter::feed(std::string_view bytes,
                       const std::function<void(std::string_view block)>& on_block) {
  if (!buffer_.empty() && !complete(bytes, on_block)) return false;
  std::size_t block = 0;  // begin of the block being read
  std::size_t line = 0;   // begin of the line being read
  while (true) {
    const std::size_t lf = bytes.find('\n', line);
    if (lf == std::string_view::npos) break;
    const bool blank = is_blank(bytes.substr(line, lf - line));
    line = lf + 1;
    if (!blank) continue;
    if (line - block > kBlockMax) return false;
    on_block(bytes.substr(block, line - block));
    block = line;
  }
  if (block == bytes.size()) return true;
  if (bytes.size() - block > kBlockMax) return false;
  buffer_.append(bytes.substr(block));
  line_ = line - block;
  return true;
}

// Takes from `bytes` what the kept part of a block lacks: all of them where its end is not there.
bool SseSplitter::complete(std::string_view& bytes,
                           const std::function<void(std::string_view block)>& on_block) {
  while (!bytes.empty()) {
    const std::size_t lf = bytes.find('\n');
    const std::size_t taken = lf == std::string_view::npos ? bytes.size() : lf + 1;
    if (buffer_.size() + taken > kBlockMax) return false;
    buffer_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (lf == std::string_view::npos) return true;
    const std::size_t end = buffer_.size();
    const std::string_view content = std::string_view(buffer_).substr(line_, end - 1 - line_);
    line_ = end;
    if (!is_blank(content)) continue;
    on_block(buffer_);
    buffer_.clear();
    line_ = 0;
    return true;
  }
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
