#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/chat_assembler.h"
#include "base/task.h"
#include "http/server.h"

namespace flotilla::gateway {

// What one client gets of a chat request, however many replicas it took. Streamed: blocks as they
// come, the head held back until the first of them or the first keep-alive. Not streamed: one whole
// body at the end, so that every failure before it is a plain HTTP status.
class ChatAnswer {
 public:
  // `headers` are of every answer: x-request-id, what is left of a key's quotas.
  ChatAnswer(http::Exchange& exchange, bool stream, http::Headers headers);

  bool streamed() const { return stream_; }
  bool started() const { return exchange_.started(); }
  int status() const { return status_; }  // that the client got; 0: none yet
  // Streamed: whole SSE blocks of chunks. false: the client is gone.
  Awaitable<bool> relay(std::string_view blocks);
  // Streamed: the last of them, which go out with what ends the answer.
  void hold(std::string blocks) { last_ = std::move(blocks); }
  // Not streamed: one chunk's JSON. An error event comes back as its Error.
  Result<void> assemble(std::string_view chunk_json);
  // Not streamed: the counts of the whole answer.
  void set_usage(const api::Usage& usage, const api::ServedBy& served) {
    assembler_.set_usage(usage, served);
  }
  // Not streamed: all of the body, instead of chunks.
  void set_whole(std::string body) { whole_ = std::move(body); }
  // Says that we are at work: the head if it is not out, and a comment. Nothing without stream.
  Awaitable<bool> keep_alive();
  // Ends it well: [DONE], or the assembled body.
  Awaitable<void> finish();
  // Ends it in the API's own form: a status while the head is held, else an error event without
  // [DONE].
  Awaitable<void> fail(Error error);
  // A runner's or engine's own refusal, passed on as it came.
  Awaitable<void> refuse(http::Response response);

 private:
  Awaitable<bool> start(std::string_view blocks);
  void add_headers(http::Headers& to) const;

  http::Exchange& exchange_;
  const bool stream_;
  const http::Headers headers_;
  int status_ = 0;
  api::ChatAssembler assembler_;
  std::string whole_;
  std::string last_;
};

}  // namespace flotilla::gateway
