#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/id.h"

namespace flotilla::cluster {

// One request inside the control plane. Given by the gateway, unique for the life of the process.
enum class TicketId : std::uint64_t {};

// One load of a pool; grows with every reload.
enum class Generation : std::uint32_t {};

// A replica's place in its pool's list. The next one gets it when it has stopped and no ticket has
// been in it; the numbers of its launches go on, so that a launch is one life for ever.
enum class ReplicaIndex : std::uint32_t {};

// One life of a runner: the replica and how many times it was launched. Every event from a node
// names its launch, so that news of a dead runner never touches its successor.
struct Launch {
  ReplicaIndex replica{};
  std::uint32_t number = 0;
  auto operator<=>(const Launch&) const = default;
};

// Names of a conversation, as hashes (affinity.h makes them). Empty: a request without history.
struct ConversationKeys {
  std::uint64_t session = 0;                // from X-Session-Id or session_id; 0: none
  std::uint64_t self = 0;                   // all messages of this request; 0: unknown
  std::vector<std::uint64_t> earlier = {};  // the prompts of its assistant messages, longest first
  std::uint64_t tie_break = 0;              // prompt_cache_key or user: only breaks ties; 0: none
};

// What the control plane has to know of a request.
struct Ticket {
  TicketId id{};
  std::string key;                  // fairness: API key id, or the peer's address without one
  double weight = 1.0;              // of the key; > 0
  std::uint64_t tokens = 1;         // estimated cost: body bytes / 4, for each of n choices
  std::uint64_t prompt_tokens = 0;  // of those what is prefilled, whatever n is; 0: all
  std::uint64_t bytes = 0;          // body bytes that waiting keeps in memory
  ConversationKeys conversation = {};
  Instant deadline = Instant::max();  // to the first byte
  bool own_timeout = false;           // the deadline is the request's own: 504 rather than 429/503
};

// How a request left its replica.
enum class Outcome : std::uint8_t {
  Completed,              // whole answer
  RequestFault,           // the request's own error (4xx): says nothing about the replica
  Cancelled,              // the client went away or its time was over
  FailedBeforeFirstByte,  // refused, reset or 5xx with nothing sent
  LostAfterFirstByte,     // the runner vanished in the middle
};

// The runner's own count, from its `: u` line; zeros where unknown.
struct Usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t completion_tokens = 0;
  Duration prompt_time{};  // prefill of the tokens that were not cached
};

}  // namespace flotilla::cluster
