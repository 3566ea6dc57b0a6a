#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/answer_form.h"
#include "api/chat_pieces.h"

namespace flotilla::api {

// A form whose stream is named events of its own, made of a chat stream's pieces.
class EventForm : public AnswerForm {
 public:
  std::string event(std::string_view data) final;

 protected:
  // What each writes goes to out_. begin() comes before the first choice and sets begun_.
  virtual void begin(const AnswerPiece& piece) = 0;
  virtual void take(const ChoicePiece& choice) = 0;
  virtual void end() = 0;
  virtual void fail_stream(const Error& error) = 0;

  std::string out_;  // of the event at hand
  bool begun_ = false;
  Usage usage_;
  std::int64_t reasoning_tokens_ = 0;
  std::string served_;
};

}  // namespace flotilla::api
