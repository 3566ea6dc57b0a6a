#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "http/message.h"

namespace flotilla::runner {

// What the gateway says about a request, in Flotilla-* headers.
struct CallHeaders {
  bool protocol = false;                // from a gateway: token comments, always a stream
  std::string request_id;               // ours when none came
  std::string alias;                    // empty: the runner's own
  std::optional<std::int64_t> created;  // unix s
  std::string node;
  double queued_ms = 0;
  std::optional<std::uint64_t> seed;
  std::string cache_group;
  std::size_t resume_bytes = 0;
  std::optional<Duration> first_token_within;
};

// `trusted`: the request came by a unix socket; else the Flotilla-* headers are ignored.
Result<CallHeaders> read_call_headers(const http::Headers& headers, bool trusted);

}  // namespace flotilla::runner
