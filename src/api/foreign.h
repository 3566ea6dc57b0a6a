#pragma once

#include <set>
#include <string>
#include <string_view>

#include "api/chat_chunks.h"
#include "api/engine_request.h"
#include "base/result.h"

// Other engines' OpenAI dialect, made ours event by event.
namespace flotilla::api {

// A request for a few tokens, streamed as all are: does the engine answer?
std::string probe_chat_body(const ForeignEngine& engine, std::string_view text, int tokens);
// Whether the bytes of its answer are a whole one; else why not.
Result<void> check_probe_answer(int status, std::string_view body);

// The first model that a GET …/models answer lists, and whose it is; empty when there is none.
struct ListedModel {
  std::string id;
  std::string owned_by;
};
ListedModel first_model(std::string_view models_json);
// The shipped template of an engine that so names itself in its list; empty: none.
std::string_view engine_of_owner(std::string_view owned_by);

// What of an engine's counts the client gets.
struct ForeignShown {
  bool usage = false;   // it asked for it
  bool cached = false;  // how much of the prompt was cached: no other caller put it there
};

// One answer's chunks: id, created, model and the names of parts become ours, what OpenAI's clients
// do not know is left out, x_flotilla comes with the last chunk: one of ours where an engine that
// was asked for usage tells none.
class ForeignChunks {
 public:
  ForeignChunks(AnswerHead head, ServedBy served, ForeignShown shown);

  void first_token(double ttft_ms) { served_.ttft_ms = ttft_ms; }
  struct Piece {
    std::string chunk;      // what the client gets; empty = nothing
    bool has_text = false;  // it carries text, a call or an end: not only the role
  };
  // `elapsed_ms` since the request was sent. An error event comes back as its Error, what is not
  // JSON as BadGateway; so does an end that says that the answer is none.
  Result<Piece> rewrite(std::string_view data, double elapsed_ms);

  bool done() const { return done_; }            // [DONE] was seen
  bool complete() const;                         // each choice that began has its finish_reason
  const Usage& usage() const { return usage_; }  // without what is not shown of the cache

 private:
  void add_served(std::string& chunk);

  AnswerHead head_;
  ServedBy served_;
  const ForeignShown shown_;
  bool told_ = false;  // who served
  bool done_ = false;
  std::set<std::int64_t> begun_;  // choices whose role was told
  std::set<std::int64_t> finished_;
  Usage usage_;
};

}  // namespace flotilla::api
