#include "gateway/refusals.h"

#include <array>

#include "base/sha256.h"

namespace flotilla::gateway {
namespace {

constexpr Duration kRefused = std::chrono::minutes(10);
constexpr std::size_t kEntriesMax = 1000;

std::string hash_of(std::string_view key, std::string_view body) {
  const std::array<std::string_view, 3> parts{key, std::string_view("\0", 1), body};
  return sha256(parts);
}

}  // namespace

void Refusals::expire(Instant now) {
  while (!entries_.empty() && (entries_.front().until <= now || entries_.size() > kEntriesMax)) {
    hashes_.erase(hashes_.find(entries_.front().hash));
    entries_.pop_front();
  }
}

void Refusals::add(std::string_view key, std::string_view body, Instant now) {
  std::string hash = hash_of(key, body);
  hashes_.insert(hash);
  entries_.push_back({.hash = std::move(hash), .until = now + kRefused});
  expire(now);
}

// Nothing is hashed while nothing is refused: that is nearly always.
bool Refusals::holds(std::string_view key, std::string_view body, Instant now) {
  expire(now);
  return !entries_.empty() && hashes_.contains(hash_of(key, body));
}

}  // namespace flotilla::gateway
