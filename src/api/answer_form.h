#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

// Other APIs' requests are chat requests with another face: each is translated to a chat request,
// and the chat answer is translated back as it passes. Pure: text in, text out.
namespace flotilla::api {

// An answer that a later request may go on from, by its id.
struct KeptAnswer {
  std::string id;
  std::string messages;  // chat messages so far, the answer included: JSON objects, each with ","
  std::string body;      // the answer as the client got it
  std::string input;     // JSON: the list of the request's own items
};

// One request's answer in its API's own form, made of the chat answer's pieces as they come.
class AnswerForm {
 public:
  virtual ~AnswerForm() = default;

  // Streamed: what the client gets for the data of one event (a chunk, an error, [DONE]); may be
  // empty.
  virtual std::string event(std::string_view data) = 0;
  // Streamed: a sign of life.
  virtual std::string keep_alive() { return ": keep-alive\n\n"; }
  // Not streamed: the body for a whole chat.completion.
  virtual std::string answer(std::string_view completion) = 0;
  // Not streamed, or a stream that never began: the body of an error.
  virtual std::string error(const Error& error) const = 0;
  // Before any piece: the answer that the request goes on from.
  virtual void follow(const KeptAnswer&) {}
  // After the last piece, once: what is to be kept of it. Before the client gets that piece.
  virtual std::optional<KeptAnswer> take_kept() { return std::nullopt; }
};

struct FormRequest {
  std::string chat;  // the body of the chat request that it is
  std::unique_ptr<AnswerForm> answer;
  std::string previous = {};   // id of the answer that it goes on from
  std::size_t earlier_at = 0;  // where in `chat` that one's messages go
  // Ids of answers whose items it names. Where there are some it is no chat request yet, but is to
  // be parsed again with what there is of them.
  std::vector<std::string> needs = {};
};

}  // namespace flotilla::api
