#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/chat_chunks.h"
#include "base/error.h"

// A chat answer as the other API forms read it: one event of its stream, or the whole of it, as
// the same struct.
namespace flotilla::api {

struct ToolCallPiece {
  std::size_t index = 0;
  std::string id, name, arguments;  // name and id come once, arguments in parts
};

struct ChoicePiece {
  int index = 0;
  std::string content;
  std::string reasoning;
  std::vector<ToolCallPiece> calls;
  std::string logprobs;       // JSON: the list of its tokens; empty = none came
  std::string finish_reason;  // OpenAI's word, in the choice's last piece
  std::string stop;           // the stop string that ended it, where the answer tells
};

struct AnswerPiece {
  std::string id;            // without "chatcmpl-"
  std::int64_t created = 0;  // unix s
  std::string model;
  std::vector<ChoicePiece> choices;
  std::optional<Usage> usage;
  std::int64_t reasoning_tokens = 0;
  std::string served;  // JSON: x_flotilla
  std::optional<Error> error;
  bool done = false;  // [DONE]
};

// One event's data: a chunk, an error or [DONE]. What is none of them is an error.
AnswerPiece read_chunk(std::string_view data);
// A chat.completion.
AnswerPiece read_completion(std::string_view body);

}  // namespace flotilla::api
