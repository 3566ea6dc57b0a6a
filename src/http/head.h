#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

// Heads of requests and answers, as bytes. Strict where two readers of one connection could
// disagree about where a message ends (request smuggling): such a head is refused, never repaired.
namespace flotilla::http {

// Finds the end of a head in bytes that grow. Refuses a bare LF and a folded line as soon as they
// come, so that garbage does not wait for a timeout.
class HeadScanner {
 public:
  enum class State { More, Whole, Malformed };

  // `bytes` begins with the head and has grown since the last call.
  State scan(std::string_view bytes);
  std::size_t size() const { return line_; }  // of a whole head, its empty line included
  bool untouched() const { return scanned_ == 0; }

 private:
  std::size_t line_ = 0;     // begin of the line being read
  std::size_t scanned_ = 0;  // no LF between line_ and here
};

struct HeadError {
  int status = 400;
  std::string message;
  Headers headers = {};  // of its answer
};

struct RequestHead {
  Request request;  // without body and peer
  bool http_1_0 = false;
  bool keep_alive = true;
  bool expect_continue = false;
  bool chunked = false;
  std::uint64_t content_length = 0;
};

// `bytes` is a whole head as HeadScanner found it.
std::expected<RequestHead, HeadError> parse_request_head(std::string_view bytes);

struct ResponseHead {
  int status = 0;
  Headers headers;
  bool keep_alive = true;
  bool chunked = false;
  std::optional<std::uint64_t> content_length;
};

std::expected<ResponseHead, std::string> parse_response_head(std::string_view bytes);

// One field as it goes over the wire. Control characters, which could end the line early, become
// spaces.
void append_field(std::string& out, std::string_view name, std::string_view value);

}  // namespace flotilla::http
