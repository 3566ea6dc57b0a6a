#include "api/event_form.h"

#include <utility>

namespace flotilla::api {

std::string EventForm::event(std::string_view data) {
  out_.clear();
  const AnswerPiece piece = read_chunk(data);
  if (piece.error) {
    fail_stream(*piece.error);
    return std::move(out_);
  }
  if (piece.usage) {
    usage_ = *piece.usage;
    reasoning_tokens_ = piece.reasoning_tokens;
  }
  if (!piece.served.empty()) served_ = piece.served;
  if (piece.done) {
    end();
    return std::move(out_);
  }
  if (!begun_) begin(piece);
  for (const ChoicePiece& choice : piece.choices) take(choice);
  return std::move(out_);
}

}  // namespace flotilla::api
