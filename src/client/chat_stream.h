#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/task.h"
#include "http/client.h"

// One streamed chat answer of any OpenAI-compatible server, and what was seen of it.
namespace flotilla::client {

struct StreamSeen {
  Instant sent;
  std::vector<Instant> pieces;  // when text came
  std::string text;
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  // of the prompt's
  std::int64_t completion_tokens = 0;
  std::string node;    // that answered, where the server says it
  bool whole = false;  // a finish_reason and [DONE] came
  std::string error;   // empty: none
};

struct ChatAsk {
  std::string content;    // of the last message, by the user
  std::string past = {};  // the messages before it: JSON objects with a comma after each
  std::string model;
  std::string key;     // sent as bearer token where not empty
  int max_tokens = 0;  // exactly: the end-of-text token is ignored; 0 = as many as there is room
  int seed = 0;
};
http::Request chat_request(const ChatAsk& ask);

// Sends the request and reads its answer. `limit`: without a byte. `enough`, where given, drops the
// rest of the answer once it is true and anything comes.
Awaitable<void> read_answer(http::Client& client, http::Request request, Duration limit,
                            const Clock& clock, StreamSeen& seen, const bool* enough = nullptr);

// The only model that can be asked; NotFound and Conflict name what is there instead.
Task<std::string> find_only_model(http::Client& client, std::string key);

}  // namespace flotilla::client
