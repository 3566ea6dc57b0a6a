#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/chat_stream.h"

// What a long prompt does to everyone else on a server: a few streams decode, the prompt comes, and
// small requests after it.
namespace flotilla::client {

struct StallOptions {
  int streams = 4;
  int prompt_tokens = 7800;  // of the long prompt, about
  int small_requests = 2;    // while the long prompt is computed, evenly spread
  int pieces_before = 80;    // of each stream, before the long prompt comes
  std::uint64_t run = 0;     // another number: texts that no cache knows
  std::string model;
  std::string key;
  Duration limit = std::chrono::minutes(10);  // without a byte, of one request
};

struct StallSeen {
  StreamSeen alone;   // the long prompt when nobody else is there
  StreamSeen beside;  // another of the same length, beside the streams
  std::vector<StreamSeen> small;
  std::vector<StreamSeen> streams;  // dropped when all others are over
};

// Unavailable when a request before the long prompt fails; later failures are part of what is seen.
Task<StallSeen> run_stall(Executor executor, http::Client& client, StallOptions options,
                          const Clock& clock);

}  // namespace flotilla::client
