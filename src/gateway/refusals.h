#pragma once

#include <deque>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace flotilla::gateway {

// Requests that crashed two runners: the same key and body are refused for 10 minutes, before they
// reach a third. At most 1,000, the oldest goes first. I/O thread only.
class Refusals {
 public:
  void add(std::string_view key, std::string_view body, Instant now);
  bool holds(std::string_view key, std::string_view body, Instant now);

 private:
  struct Entry {
    std::string hash;
    Instant until{};
  };
  void expire(Instant now);

  std::deque<Entry> entries_;
  std::multiset<std::string> hashes_;
};

}  // namespace flotilla::gateway
