#pragma once

#include <memory>
#include <string>

#include "api/answer_form.h"

namespace flotilla::api {

// What an answer takes over from its request.
struct ResponsesAnswerOptions {
  std::string shown;     // JSON object: the request's fields that a response repeats
  std::string messages;  // JSON list: the chat messages of its input
  std::string items;     // JSON list: its input's items
  bool store = true;
};

// Chat chunks as the Responses API's events (response.created … response.completed), numbered; a
// whole answer as its response object.
std::unique_ptr<AnswerForm> make_responses_answer(ResponsesAnswerOptions options);

}  // namespace flotilla::api
