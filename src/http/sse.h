#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace flotilla::http {

// What a stream of events is sent with: not cached, and not held back by a proxy.
Headers event_stream_headers();

// "data: …\n\n", with a name "event: …" before it; `json` has no line break.
std::string sse_event(std::string_view json, std::string_view name = {});
std::string sse_comment(std::string_view text);

// Cuts a byte stream into SSE blocks (each ends with an empty line), whatever the borders of the
// reads.
class SseSplitter {
 public:
  // Calls `on_block` with each whole block, its blank line included; keeps the rest. false: a block
  // is longer than 1 MiB.
  bool feed(std::string_view bytes, const std::function<void(std::string_view block)>& on_block);
  bool empty() const { return buffer_.empty(); }  // no part of a block is left

 private:
  bool complete(std::string_view& bytes,
                const std::function<void(std::string_view block)>& on_block);

  std::string buffer_;    // a part of a block
  std::size_t line_ = 0;  // where its last line, which has no end yet, begins
};

// The joined `data:` lines of a block; empty when it has none.
std::string sse_data(std::string_view block);

}  // namespace flotilla::http
