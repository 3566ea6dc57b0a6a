#pragma once

#include <string>
#include <string_view>
#include <vector>

// W3C Trace Context (level 2): what a client's tracing says of a request. It is passed on to the
// replica as it came, since we make no spans of our own, and shown in the request's timeline.
namespace flotilla::api {

struct TraceContext {
  std::string traceparent = {};  // as version 00 writes it; empty: none, or one that is malformed
  std::string tracestate = {};

  bool empty() const { return traceparent.empty(); }
  // 32 hex digits; empty without a trace.
  std::string_view trace_id() const;
};

// `traceparents` and `tracestates`: the values of these headers, in their order. More than one
// traceparent, or a malformed one, is as if none had come, and then tracestate is not looked at. A
// tracestate that is malformed or beyond 512 characters is left out.
TraceContext read_trace_context(const std::vector<std::string_view>& traceparents,
                                const std::vector<std::string_view>& tracestates);

}  // namespace flotilla::api
