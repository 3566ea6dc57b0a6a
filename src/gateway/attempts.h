#pragma once

#include <deque>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/result.h"

namespace flotilla::gateway {

// Who guesses: wrong keys and tokens by the address that they came from. An IPv6 address counts
// with its whole /64, which one customer has. All of them together have a bound too, since whoever
// has many addresses has many tries; only this machine itself is beside it, so that nobody else can
// shut its operator out. Pure; I/O thread only.
class Attempts {
 public:
  static constexpr std::size_t kPerMinute = 10;
  static constexpr std::size_t kAllPerMinute = 1000;
  static constexpr std::size_t kToldPerMinute = 10;
  static constexpr std::size_t kAddressesMax = 10'000;  // beyond, the oldest is forgotten

  struct Sender {
    std::string address;
    bool is_loopback = false;
  };

  // ResourceExhausted: nothing more is compared for this address within the minute.
  Result<void> check(const Sender& sender, Instant now);
  void failed(const Sender& sender, std::string_view secret, Instant now);
  // The same wrong one came from there within the minute: no new guess.
  bool knows(const Sender& sender, std::string_view secret, Instant now);
  // Whether a failure deserves a line of the audit: one an address and minute, and few in all.
  bool tell(const Sender& sender, Instant now);

 private:
  struct Failure {
    Instant at{};
    std::string hash;  // of the wrong secret
  };
  struct Entry {
    std::string address;
    std::deque<Failure> failures;  // of the last minute, at most kPerMinute
    Instant at{};                  // of the newest
    bool told = false;
    Instant told_at{};
  };
  void forget_old(Instant now);
  Entry* find(const Sender& sender, Instant now);

  std::list<Entry> entries_;  // those that failed within a minute, the newest last
  std::unordered_map<std::string, std::list<Entry>::iterator> by_address_;
  std::deque<Instant> all_;  // of addresses elsewhere
  std::deque<Instant> told_;
};

}  // namespace flotilla::gateway
