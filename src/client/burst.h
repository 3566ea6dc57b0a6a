#pragma once

#include <string>
#include <vector>

#include "client/chat_stream.h"

// A load on any OpenAI-compatible server, and what was seen of it.
namespace flotilla::client {

struct BurstOptions {
  int requests = 20;     // sent at the same moment
  int max_tokens = 100;  // of each answer, exactly: the end-of-text token is ignored
  std::string model;
  std::string key;                            // sent as bearer token where not empty
  std::string prompt;                         // instead of ours, after each request's number
  Duration limit = std::chrono::minutes(10);  // without a byte, of one request
};

struct BurstSeen {
  Instant begin;
  Instant end;
  int max_tokens = 0;
  std::vector<StreamSeen> streams;
};

// One short request that is not counted (the first answer of a server is slower), then all at once.
// An error only if that first request fails: after it failures are part of what is seen.
Task<BurstSeen> run_burst(Executor executor, http::Client& client, BurstOptions options,
                          const Clock& clock);

}  // namespace flotilla::client
