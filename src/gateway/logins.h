#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"

namespace flotilla::gateway {

// Who has logged in to the dashboard. A log-in is a random secret that only a browser's cookie
// holds; here is its hash, in memory: a restart asks everybody for the token again. At most kMax;
// beyond, the one that was idle longest ends. Pure but for chance in begin(). I/O thread only.
class Logins {
 public:
  static constexpr std::chrono::hours kIdleMax{12};
  static constexpr std::size_t kMax = 1000;

  // The cookie's value.
  std::string begin(Instant now);
  bool hold(std::string_view secret, Instant now) const;
  // As hold(), and it is idle from `now` on.
  bool use(std::string_view secret, Instant now);
  void end(std::string_view secret);
  std::size_t size() const { return used_.size(); }

 private:
  std::unordered_map<std::string, Instant> used_;  // by hash: when last
};

}  // namespace flotilla::gateway
