#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "cluster/settings.h"
#include "cluster/ticket.h"

namespace flotilla::cluster {

// One message of a request, as the gateway hashes it (role and content).
struct MessageDigest {
  std::uint64_t hash = 0;
  bool assistant = false;
};

// A 64-bit hash of bytes (FNV-1a with a final mix): to name conversations, not to protect anything.
std::uint64_t digest(std::string_view bytes, std::uint64_t seed = 0);

// The names of a conversation, scoped to the cache group (API key). The prompt that produced an
// assistant message is this request's prefix before that message: where that prompt ran, its state
// is. A request without an assistant message has no history, so a shared system prompt attracts
// nobody.
ConversationKeys conversation_keys(std::string_view cache_group, std::string_view session_id,
                                   std::span<const MessageDigest> messages);

// Spreads the bits of x: a bijection.
std::uint64_t mix(std::uint64_t x);

// Where conversations live: hash -> the launch that holds their KV state. Bounded, least recently
// used goes first; idle entries expire. An entry whose launch is over is a miss.
class AffinityTable {
 public:
  explicit AffinityTable(AffinitySettings settings) : settings_(settings) {}

  // The home by session id, else by the longest known prompt.
  std::optional<Launch> find_home(const ConversationKeys& keys, Instant now);
  // This request goes to `launch`: so does the conversation from here on. A first prompt (without
  // history) that two launches have seen is many people's and names no home.
  void settle(const ConversationKeys& keys, Launch launch, Instant now);
  // How much of the conversation its home holds.
  void note_tokens(const ConversationKeys& keys, std::uint64_t tokens);
  void forget(std::uint64_t key);

  struct Conversation {
    std::uint64_t key = 0;
    Launch home;
    Instant used{};
    std::uint64_t tokens = 0;
    bool named = false;  // by a session id of the client's
  };
  // The most recent ones, by their latest prompt or session id.
  std::vector<Conversation> list(std::size_t most) const;
  void configure(AffinitySettings settings) { settings_ = settings; }
  std::size_t size() const { return index_.size(); }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  // A link of the list from most to least recently used; slots are reused.
  struct Entry {
    std::uint64_t key = 0;
    Launch home;
    Instant used{};
    bool shared = false;
    bool named = false;      // the key is a session id's
    bool continued = false;  // a later prompt of its conversation is here, or its session id
    std::uint32_t tokens = 0;
    std::uint32_t newer = kNone;
    std::uint32_t older = kNone;
  };

  std::uint32_t find(std::uint64_t key, Instant now);
  void put(std::uint64_t key, Launch launch, bool first_prompt, Instant now);
  void touch(std::uint32_t slot, Instant now);
  void unlink(std::uint32_t slot);
  void push_newest(std::uint32_t slot);
  void erase(std::uint32_t slot);
  void expire(Instant now);

  AffinitySettings settings_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
  std::uint32_t newest_ = kNone;
  std::uint32_t oldest_ = kNone;
};

}  // namespace flotilla::cluster
