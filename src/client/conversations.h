#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/task.h"
#include "client/burst_report.h"
#include "http/client.h"

// Many conversations at once: does each stay with the replica that holds it, and is the work even?
namespace flotilla::client {

struct ConversationOptions {
  int conversations = 40;
  int turns = 5;
  int answer_tokens = 32;
  int first_tokens = 0;  // of each conversation's first turn, about; 0 = as of the others
  std::uint64_t seed = 1;
  std::string model;
  std::string key;
};

struct TurnSeen {
  int turn = 0;  // from 0
  std::string node;
  std::uint64_t computed_tokens = 0;  // prompt that was not cached, and answer
  std::uint64_t cached_tokens = 0;
  std::uint64_t prompt_tokens = 0;
  double ttft_ms = 0;
  bool at_home = false;  // where the turn before was
  std::string error;     // empty: whole
};

struct ConversationReport {
  int turns = 0;
  int failed = 0;
  double at_home = 0;                         // of the turns after the first
  double busiest_to_least = 0;                // in computed tokens
  std::map<std::string, std::uint64_t> work;  // by node
  std::uint64_t cached_tokens = 0;
  Spread ttft_ms;
  std::map<int, Spread> ttft_by_turn;    // from 0
  std::map<int, double> cached_by_turn;  // share of the prompts' tokens
  std::string first_error;
};

// Lengths of the turns follow Zipf's law over 32 … 1,024 tokens, about.
Task<std::vector<TurnSeen>> run_conversations(Executor executor, http::Client& client,
                                              ConversationOptions options, const Clock& clock);
ConversationReport report_of(const std::vector<TurnSeen>& turns);
std::string conversation_table(const ConversationReport& report);
std::string conversation_json(const ConversationReport& report);

}  // namespace flotilla::client
