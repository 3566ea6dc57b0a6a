#include "gateway/key_use.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/sha256.h"

namespace flotilla::gateway {
namespace {

// A prefix that is cached for one key must not show to another, by a count or by time, unless the
// load says that it may. Nor does the operator's to those who need no key.
std::string group_of(const Caller& caller, const KeyRing::Key* key, const PoolRuntime& pool) {
  if (pool.generation().load.share_prefixes.value_or(false)) return {};
  if (key == nullptr) return caller.is_operator ? "operator" : "";
  return key->spec.cache_group.empty() ? key->id : "group " + key->spec.cache_group;
}

}  // namespace

bool may_ask(const KeyRing& keys, const Caller& caller, const PoolRuntime& pool) {
  const KeyRing::Key* key = keys.find(caller.key);
  if (key == nullptr || key->spec.models.empty()) return true;
  const auto& may = key->spec.models;
  const auto listed = [&may](const std::string& alias) {
    return std::ranges::find(may, alias) != may.end();
  };
  return listed(pool.alias()) || std::ranges::any_of(pool.generation().load.aliases, listed);
}

bool is_cache_shared(const KeyRing& keys, bool has_token, const api::LoadSpec& load) {
  return load.share_prefixes.value_or(false) || (keys.empty() && !has_token);
}

std::string cache_salt(std::string_view secret, std::string_view cache_group) {
  return hex_text(hmac_sha256(secret, std::span(&cache_group, 1)));
}

std::string conversation_scope(std::string_view secret, std::string_view cache_group,
                               std::string_view owner) {
  const std::string_view parts[] = {"conversations of ", cache_group.empty() ? owner : cache_group};
  return hex_text(hmac_sha256(secret, parts));
}

std::uint64_t tokens_about(std::size_t body_bytes) {
  return std::max<std::uint64_t>(1, body_bytes / 4);
}

// Its prompts, all of them, are in the body already.
std::uint64_t queue_tokens(const api::ChatRequest& chat, std::size_t body_bytes) {
  const int each = chat.raw.prompts.empty() ? chat.n : chat.raw.each;
  return std::max(static_cast<std::uint64_t>(chat.n),
                  tokens_about(body_bytes) * static_cast<std::uint64_t>(each));
}

Result<KeyUse> use_key(KeyRing& keys, const Caller& caller, const PoolRuntime& pool,
                       const KeyRing::Cost& cost, Instant now) {
  KeyUse use;
  if (caller.key.empty()) {
    use.cache_group = group_of(caller, nullptr, pool);
    return use;
  }
  auto lease = keys.enter(caller.key, cost, now);
  if (!lease) return fail(lease.error());
  const KeyRing::Key& key = *keys.find(caller.key);
  use.weight = key.spec.weight;
  use.spender = {.key = key.id, .name = key.spec.name};
  use.cache_group = group_of(caller, &key, pool);
  for (auto& [name, value] : keys.left_fields(key.id, now))
    use.headers.set(std::move(name), std::move(value));
  use.lease = std::move(*lease);
  return use;
}

}  // namespace flotilla::gateway
