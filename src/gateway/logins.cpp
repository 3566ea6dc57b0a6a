#include "gateway/logins.h"

#include <algorithm>

#include "gateway/key_ring.h"

namespace flotilla::gateway {

std::string Logins::begin(Instant now) {
  std::erase_if(used_, [now](const auto& login) { return now - login.second >= kIdleMax; });
  if (used_.size() >= kMax) {
    used_.erase(
        std::ranges::min_element(used_, {}, [](const auto& login) { return login.second; }));
  }
  std::string secret = make_secret();
  used_[hash_of_secret(secret)] = now;
  return secret;
}

// By its hash: the search tells nothing of the secret.
bool Logins::hold(std::string_view secret, Instant now) const {
  const auto found = used_.find(hash_of_secret(secret));
  return found != used_.end() && now - found->second < kIdleMax;
}

bool Logins::use(std::string_view secret, Instant now) {
  if (!hold(secret, now)) return false;
  used_[hash_of_secret(secret)] = now;
  return true;
}

void Logins::end(std::string_view secret) { used_.erase(hash_of_secret(secret)); }

}  // namespace flotilla::gateway
