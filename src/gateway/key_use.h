#pragma once

#include <cstdint>
#include <string>

#include "api/openai.h"
#include "gateway/guard.h"
#include "gateway/key_ring.h"
#include "gateway/pool_runtime.h"
#include "gateway/usage_tally.h"
#include "http/message.h"

namespace flotilla::gateway {

// What a request's API key means for it.
struct KeyUse {
  double weight = 1;
  std::string cache_group;  // prefixes are shared within it
  http::Headers headers;    // x-ratelimit-*: what is left
  KeyRing::Lease lease;
  UsageTally::Spender spender;
};

// For a model that the caller may ask for. Errors as KeyRing::enter's.
Result<KeyUse> use_key(KeyRing& keys, const Caller& caller, const PoolRuntime& pool,
                       const KeyRing::Cost& cost, Instant now);

// Whether what one caller had computed may show to any other: the load says so, or nobody is told
// apart. Engines that are not ours have one cache for all.
bool is_cache_shared(const KeyRing& keys, bool has_token, const api::LoadSpec& load);
// What such an engine that keeps prefixes apart is told of a group: `secret` is ours, so that
// nobody who asks the engine itself can be one of it.
std::string cache_salt(std::string_view secret, std::string_view cache_group);

// Within what a conversation's names hold: the cache group, else whose request it is. The names are
// hashes that are quick to make and easily made to collide, so whoever knows a group and guesses
// what is said in it could name its conversations too, and see that they are there: `secret` is not
// known.
std::string conversation_scope(std::string_view secret, std::string_view cache_group,
                               std::string_view owner);

// Of a body, before anything has counted its tokens.
std::uint64_t tokens_about(std::size_t body_bytes);
// What it costs in the fair queue: to that, n choices are n requests.
std::uint64_t queue_tokens(const api::ChatRequest& chat, std::size_t body_bytes);

// Whether a key may ask for a model, by any of its names. Without a key: yes.
bool may_ask(const KeyRing& keys, const Caller& caller, const PoolRuntime& pool);

}  // namespace flotilla::gateway
