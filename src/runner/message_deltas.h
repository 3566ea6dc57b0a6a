#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/chat_chunks.h"
#include "engine/chat.h"

namespace flotilla::runner {

// One choice's text on its way through a parser: what each piece of text adds to the message. The
// sum of all deltas depends on the text alone, not on how it is cut. One thread at a time.
class MessageDeltas {
 public:
  // `name`: of the request and choice; ids of tool calls are made of it, so that a resumed answer
  // has the same.
  MessageDeltas(std::shared_ptr<const engine::AnswerParser> parser, std::string name);

  // More text, and whether it is the last. As slow as a parse of the whole text.
  api::ChatDelta take(std::string_view text, bool last);
  bool has_calls() const { return !shown_.tool_calls.empty(); }

 private:
  const std::shared_ptr<const engine::AnswerParser> parser_;
  const std::string name_;
  std::string text_;
  engine::ParsedAnswer shown_;
};

}  // namespace flotilla::runner
