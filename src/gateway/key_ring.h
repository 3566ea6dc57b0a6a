#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/keys.h"
#include "base/clock.h"
#include "base/result.h"

namespace flotilla::gateway {

std::string make_secret();                         // "fl-" and 40 hex digits
std::string hash_of_secret(std::string_view key);  // SHA-256, hex: what is stored

// The API keys and what each has left of its quotas. Pure but for chance in make_secret(). I/O
// thread only.
class KeyRing {
 public:
  struct Key {
    std::string id;
    std::string hash;  // of the secret
    api::KeySpec spec;
    std::int64_t created_unix_s = 0;
    bool has_expired(std::int64_t unix_s) const {
      return spec.expires_unix_s > 0 && unix_s >= spec.expires_unix_s;
    }
  };

  // One that is known goes on with what it has left and has under way.
  void put(Key key);
  bool erase(const std::string& id);
  bool empty() const { return keys_.empty(); }
  const Key* find(const std::string& id) const;
  const Key* find_name(const std::string& name) const;
  std::vector<api::KeyShown> list() const;

  // The key that this is the secret of, its time over or not.
  const Key* find_secret(std::string_view secret) const;

  // One request, whatever comes of it. ResourceExhausted: the key has no more in this minute.
  Result<void> take_request(const std::string& id, Instant now);

  // An answer that is made for a key, for as long as it lives.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept = default;
    Lease& operator=(Lease&& other) noexcept = default;
    // What it has come to by now, instead of what was charged before: said as tokens come, so that
    // a long answer is paid while it is made. A prompt whose tokens nobody told (yet, or its client
    // left before, or an engine tells none) stays charged as it came.
    void settle(std::uint64_t prompt_tokens, std::uint64_t generated_tokens, Instant now);

   private:
    friend class KeyRing;
    struct State;
    explicit Lease(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
  };
  struct Cost {
    std::uint64_t tokens = 1;    // about
    std::int64_t sequences = 1;  // of max_in_flight: one for each choice of each prompt
    // They need not be under way together, and take what is left of max_in_flight, at least one.
    bool in_turn = false;
  };
  // ResourceExhausted names the quota that is used up and when there is enough again;
  // PermissionDenied: there never will be.
  Result<Lease> enter(const std::string& id, const Cost& cost, Instant now);

  struct Left {
    std::int64_t limit = 0;  // a minute; 0 = no bound
    std::int64_t left = 0;
    double full_in_s = 0;
  };
  Left requests_left(const std::string& id, Instant now) const;
  Left tokens_left(const std::string& id, Instant now) const;
  // Of what has a bound: x-ratelimit-{limit,remaining,reset}-{requests,tokens}. Whoever is refused
  // for a quota is told them too (Error::fields).
  using Fields = std::vector<std::pair<std::string, std::string>>;
  Fields left_fields(const std::string& id, Instant now) const;

 private:
  // What may be taken at once is a minute's worth; it comes back evenly. Debts are paid back first.
  struct Bucket {
    double left = 0;
    Instant at{};
    double now_left(double per_min, Instant now) const;
    void take(double amount, double per_min, Instant now);
  };
  struct Entry {
    Key key;
    Bucket requests, tokens;
    std::int64_t in_flight = 0;
  };
  static Left left_of(std::int64_t limit, const Bucket& bucket, Instant now);
  static Fields fields_of(const Entry& entry, Instant now);
  static Error used_up(const Entry& entry, std::string_view quota, std::int64_t limit,
                       double wait_s, Instant now);
  std::map<std::string, std::shared_ptr<Entry>> keys_;  // by id
  std::unordered_map<std::string, std::shared_ptr<Entry>> by_hash_;
};

}  // namespace flotilla::gateway
