#include "cluster/affinity.h"

#include <algorithm>

namespace flotilla::cluster {

namespace {
constexpr std::uint64_t kSession = 0x5E55;
constexpr std::uint64_t kMessage = 0x3E55;
}  // namespace

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

std::uint64_t digest(std::string_view bytes, std::uint64_t seed) {
  std::uint64_t hash = 0xCBF29CE484222325ULL ^ mix(seed);
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3ULL;
  }
  hash = mix(hash ^ bytes.size());
  return hash == 0 ? 1 : hash;  // 0 means: none
}

ConversationKeys conversation_keys(std::string_view cache_group, std::string_view session_id,
                                   std::span<const MessageDigest> messages) {
  ConversationKeys keys;
  const std::uint64_t group = digest(cache_group);
  if (!session_id.empty()) keys.session = digest(session_id, group + kSession);
  std::uint64_t chain = mix(group + kMessage);
  bool history = false;
  for (const MessageDigest& message : messages) {
    if (message.assistant && chain != mix(group + kMessage)) {
      keys.earlier.insert(keys.earlier.begin(), chain);
      history = true;
    }
    chain = mix(chain * 3 + mix(message.hash) + (message.assistant ? 1 : 0));
    if (chain == 0) chain = 1;
  }
  if (!messages.empty()) keys.self = chain;
  if (history) keys.earlier.insert(keys.earlier.begin(), chain);  // the same request again
  return keys;
}

std::uint32_t AffinityTable::find(std::uint64_t key, Instant now) {
  const auto found = index_.find(key);
  if (found == index_.end()) return kNone;
  if (now - entries_[found->second].used > settings_.ttl) {
    erase(found->second);
    return kNone;
  }
  return found->second;
}

std::optional<Launch> AffinityTable::find_home(const ConversationKeys& keys, Instant now) {
  if (keys.session != 0) {
    if (const std::uint32_t slot = find(keys.session, now); slot != kNone) {
      return entries_[slot].home;
    }
  }
  for (const std::uint64_t key : keys.earlier) {
    const std::uint32_t slot = find(key, now);
    if (slot == kNone || entries_[slot].shared) continue;
    touch(slot, now);
    return entries_[slot].home;
  }
  return std::nullopt;
}

void AffinityTable::settle(const ConversationKeys& keys, Launch launch, Instant now) {
  expire(now);
  if (keys.session != 0) put(keys.session, launch, false, now);
  if (keys.self != 0) put(keys.self, launch, keys.earlier.empty(), now);
  if (keys.session != 0) {
    if (const auto slot = find(keys.session, now); slot != kNone) entries_[slot].named = true;
    if (const auto slot = find(keys.self, now); slot != kNone) entries_[slot].continued = true;
  }
  for (const std::uint64_t key : keys.earlier) {
    if (key == keys.self) continue;
    if (const auto slot = find(key, now); slot != kNone) entries_[slot].continued = true;
  }
}

void AffinityTable::note_tokens(const ConversationKeys& keys, std::uint64_t tokens) {
  const auto found = index_.find(keys.session != 0 ? keys.session : keys.self);
  if (found == index_.end()) return;
  entries_[found->second].tokens =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(tokens, UINT32_MAX));
}

std::vector<AffinityTable::Conversation> AffinityTable::list(std::size_t most) const {
  std::vector<Conversation> out;
  for (std::uint32_t slot = newest_; slot != kNone && out.size() < most;
       slot = entries_[slot].older) {
    const Entry& entry = entries_[slot];
    if (entry.continued || entry.shared) continue;
    out.push_back({.key = entry.key,
                   .home = entry.home,
                   .used = entry.used,
                   .tokens = entry.tokens,
                   .named = entry.named});
  }
  return out;
}

void AffinityTable::put(std::uint64_t key, Launch launch, bool first_prompt, Instant now) {
  if (settings_.entries_max == 0) return;
  if (const std::uint32_t slot = find(key, now); slot != kNone) {
    Entry& entry = entries_[slot];
    entry.shared = first_prompt && (entry.shared || entry.home != launch);
    entry.home = launch;
    touch(slot, now);
    return;
  }
  while (index_.size() >= settings_.entries_max) erase(oldest_);
  std::uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  entries_[slot] = {.key = key, .home = launch, .used = now};
  index_.emplace(key, slot);
  push_newest(slot);
}

void AffinityTable::forget(std::uint64_t key) {
  if (const auto found = index_.find(key); found != index_.end()) erase(found->second);
}

void AffinityTable::touch(std::uint32_t slot, Instant now) {
  entries_[slot].used = now;
  unlink(slot);
  push_newest(slot);
}

void AffinityTable::unlink(std::uint32_t slot) {
  Entry& entry = entries_[slot];
  (entry.newer == kNone ? newest_ : entries_[entry.newer].older) = entry.older;
  (entry.older == kNone ? oldest_ : entries_[entry.older].newer) = entry.newer;
  entry.newer = entry.older = kNone;
}

void AffinityTable::push_newest(std::uint32_t slot) {
  entries_[slot].older = newest_;
  if (newest_ != kNone) entries_[newest_].newer = slot;
  newest_ = slot;
  if (oldest_ == kNone) oldest_ = slot;
}

void AffinityTable::erase(std::uint32_t slot) {
  unlink(slot);
  index_.erase(entries_[slot].key);
  free_.push_back(slot);
}

void AffinityTable::expire(Instant now) {
  while (oldest_ != kNone && now - entries_[oldest_].used > settings_.ttl) erase(oldest_);
}

}  // namespace flotilla::cluster
