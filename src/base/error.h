#pragma once

#include <string>
#include <utility>
#include <vector>

namespace flotilla {

// What kind of failure it is; api/error_body.h has the one table from here to HTTP statuses.
enum class Code {
  InvalidArgument,    // 400: malformed or out-of-range value
  Unauthenticated,    // 401
  PermissionDenied,   // 403
  NotFound,           // 404
  MethodNotAllowed,   // 405
  Conflict,           // 409
  TooLarge,           // 413
  UnsupportedMedia,   // 415
  Unprocessable,      // 422: understood, but cannot be done here (preflight)
  ResourceExhausted,  // 429: queue or quota full
  Internal,           // 500: our bug, or a request that crashed its runner
  BadGateway,         // 502: no replica came up
  Unavailable,        // 503: nobody can serve this now
  DeadlineExceeded,   // 504
  Cancelled,          // the client went away; nobody is left to read an answer
};

// An expected failure. `message` names what was wrong, with its value, and what would do.
struct Error {
  Code code = Code::Internal;
  std::string message;
  std::string param = {};   // the request field at fault, e.g. "max_tokens"
  std::string reason = {};  // machine-readable, e.g. "context_length_exceeded", "model_not_found"
  int retry_after_s = 0;    // > 0: when trying again makes sense
  // What the answer's head says beside it: what is left of the quotas that are used up.
  std::vector<std::pair<std::string, std::string>> fields = {};
};

}  // namespace flotilla
