#pragma once

#include <cstdint>
#include <string>

#include "gateway/guard.h"
#include "gateway/key_ring.h"
#include "gateway/pool_runtime.h"
#include "gateway/usage_tally.h"
#include "http/message.h"

namespace flotilla::gateway {

// What a request's API key means for it.
struct KeyUse {
  std::uint64_t tokens = 1;  // about what it costs: its bytes / 4
  double weight = 1;
  std::string cache_group;  // prefixes are shared within it
  http::Headers headers;    // x-ratelimit-*: what is left
  KeyRing::Lease lease;
  UsageTally::Spender spender;
};

// For a model that the caller may ask for. ResourceExhausted: a quota is used up.
Result<KeyUse> use_key(KeyRing& keys, const Caller& caller, const PoolRuntime& pool,
                       std::size_t body_bytes, Instant now);

// Whether a key may ask for a model, by any of its names. Without a key: yes.
bool may_ask(const KeyRing& keys, const Caller& caller, const PoolRuntime& pool);

}  // namespace flotilla::gateway
