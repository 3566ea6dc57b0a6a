#pragma once

#include <string>
#include <string_view>

#include "api/chat_chunks.h"
#include "base/result.h"

// Other engines' OpenAI dialect, made ours event by event.
namespace flotilla::api {

// The client's body as a foreign engine gets it: its own model name, always streamed, usage asked
// for, our own fields (session_id, timeout_s) taken out.
Result<std::string> foreign_chat_body(std::string_view client_body,
                                      std::string_view upstream_model);

// A request for one token, not streamed: does the engine answer?
std::string probe_chat_body(std::string_view upstream_model);

// The first model that a GET …/models answer lists; empty when there is none.
std::string first_model(std::string_view models_json);

// One answer's chunks: id, created and model become ours, usage is hidden from a client that did
// not ask for it, x_flotilla comes with the last chunk.
class ForeignChunks {
 public:
  ForeignChunks(AnswerHead head, ServedBy served, bool show_usage);

  // Whether an event's data carries text: for the time to the first token.
  static bool is_content(std::string_view data);
  void first_token(double ttft_ms) { served_.ttft_ms = ttft_ms; }
  // What the client gets for an event's data; empty = nothing. `elapsed_ms` since the request was
  // sent. An error event comes back as its Error, what is not JSON as BadGateway.
  Result<std::string> rewrite(std::string_view data, double elapsed_ms);

  bool done() const { return done_; }          // [DONE] was seen
  bool complete() const { return finished_; }  // a finish_reason was seen
  const Usage& usage() const { return usage_; }

 private:
  AnswerHead head_;
  ServedBy served_;
  const bool show_usage_;
  bool done_ = false;
  bool finished_ = false;
  Usage usage_;
};

}  // namespace flotilla::api
