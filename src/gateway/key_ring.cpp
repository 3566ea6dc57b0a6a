#include "gateway/key_ring.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/random.h"
#include "base/sha256.h"

namespace flotilla::gateway {
namespace {

constexpr int kSecretBytes = 20;

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes)
    out += fmt::format("{:02x}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
  return out;
}

Error too_many(const api::KeySpec& spec, std::int64_t sequences) {
  return Error{
      .code = Code::PermissionDenied,
      .message = fmt::format("key \"{}\" may have {} answers at once, and this request asks "
                             "for {} (n for each prompt); ask for fewer",
                             spec.name, spec.max_in_flight, sequences),
      .param = "n",
      .reason = "too_many_answers"};
}

Error taken_back() {
  return Error{.code = Code::Unauthenticated,
               .message = "this API key was taken back",
               .reason = "invalid_api_key"};
}

}  // namespace

std::string make_secret() { return "fl-" + random_hex(kSecretBytes); }

std::string hash_of_secret(std::string_view key) {
  const std::string_view parts[] = {key};
  return hex(sha256(parts));
}

struct KeyRing::Lease::State {
  State(std::shared_ptr<Entry> of, double charge, std::int64_t count)
      : entry(std::move(of)), sequences(count), as_it_came(charge), charged(charge) {
    entry->in_flight += sequences;
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { entry->in_flight -= sequences; }

  const std::shared_ptr<Entry> entry;  // the key itself may be gone
  const std::int64_t sequences;
  const double as_it_came;
  double charged;
};

void KeyRing::Lease::settle(std::uint64_t prompt_tokens, std::uint64_t generated_tokens,
                            Instant now) {
  if (!state_) return;
  const double prompt = prompt_tokens > 0 ? static_cast<double>(prompt_tokens) : state_->as_it_came;
  const double used = prompt + static_cast<double>(generated_tokens);
  Entry& entry = *state_->entry;
  if (const auto per_min = entry.key.spec.tokens_per_min; per_min > 0)
    entry.tokens.take(used - state_->charged, static_cast<double>(per_min), now);
  state_->charged = used;
}

double KeyRing::Bucket::now_left(double per_min, Instant now) const {
  return std::min(per_min, left + to_s(now - at) * per_min / 60);
}

void KeyRing::Bucket::take(double amount, double per_min, Instant now) {
  left = now_left(per_min, now) - amount;
  at = now;
}

void KeyRing::put(Key key) {
  const auto known = keys_.find(key.id);
  const bool is_new = known == keys_.end();
  const auto entry = is_new ? std::make_shared<Entry>() : known->second;
  const api::KeySpec& before = entry->key.spec;
  // What had no bound begins with a minute's worth.
  if (is_new || before.requests_per_min == 0)
    entry->requests = {.left = static_cast<double>(key.spec.requests_per_min)};
  if (is_new || before.tokens_per_min == 0)
    entry->tokens = {.left = static_cast<double>(key.spec.tokens_per_min)};
  by_hash_.erase(entry->key.hash);
  by_hash_[key.hash] = entry;
  keys_[key.id] = entry;
  entry->key = std::move(key);
}

bool KeyRing::erase(const std::string& id) {
  const auto found = keys_.find(id);
  if (found == keys_.end()) return false;
  by_hash_.erase(found->second->key.hash);
  keys_.erase(found);
  return true;
}

const KeyRing::Key* KeyRing::find(const std::string& id) const {
  const auto found = keys_.find(id);
  return found == keys_.end() ? nullptr : &found->second->key;
}

const KeyRing::Key* KeyRing::find_name(const std::string& name) const {
  for (const auto& [id, entry] : keys_) {
    if (entry->key.spec.name == name) return &entry->key;
  }
  return nullptr;
}

std::vector<api::KeyShown> KeyRing::list() const {
  std::vector<api::KeyShown> out;
  for (const auto& [id, entry] : keys_) {
    out.push_back({.id = id,
                   .spec = entry->key.spec,
                   .created_unix_s = entry->key.created_unix_s,
                   .in_flight = entry->in_flight});
  }
  return out;
}

// By its hash: the search tells nothing of the secret.
const KeyRing::Key* KeyRing::find_secret(std::string_view secret) const {
  const auto found = by_hash_.find(hash_of_secret(secret));
  return found == by_hash_.end() ? nullptr : &found->second->key;
}

Error KeyRing::used_up(const Entry& entry, std::string_view quota, std::int64_t limit,
                       double wait_s, Instant now) {
  const int seconds = std::clamp(static_cast<int>(std::ceil(wait_s)), 1, 300);
  return Error{.code = Code::ResourceExhausted,
               .message = fmt::format("key \"{}\" has used up its {} {}; try again in {} s",
                                      entry.key.spec.name, limit, quota, seconds),
               .reason = "rate_limit_exceeded",
               .retry_after_s = seconds,
               .fields = fields_of(entry, now)};
}

Result<void> KeyRing::take_request(const std::string& id, Instant now) {
  const auto found = keys_.find(id);
  if (found == keys_.end()) return fail(taken_back());
  Entry& entry = *found->second;
  const api::KeySpec& spec = entry.key.spec;
  if (spec.requests_per_min == 0) return {};
  const auto per_min = static_cast<double>(spec.requests_per_min);
  const double left = entry.requests.now_left(per_min, now);
  if (left < 1) {
    return fail(
        used_up(entry, "requests a minute", spec.requests_per_min, (1 - left) * 60 / per_min, now));
  }
  entry.requests.take(1, per_min, now);
  return {};
}

Result<KeyRing::Lease> KeyRing::enter(const std::string& id, const Cost& cost, Instant now) {
  const auto found = keys_.find(id);
  if (found == keys_.end()) return fail(taken_back());
  Entry& entry = *found->second;
  const api::KeySpec& spec = entry.key.spec;
  const std::int64_t free = spec.max_in_flight - entry.in_flight;
  const std::int64_t sequences = cost.in_turn && spec.max_in_flight > 0
                                     ? std::min(cost.sequences, std::max<std::int64_t>(1, free))
                                     : cost.sequences;
  if (spec.max_in_flight > 0 && sequences > spec.max_in_flight)
    return fail(too_many(spec, sequences));
  if (spec.max_in_flight > 0 && sequences > free)
    return fail(used_up(entry, "answers at once", spec.max_in_flight, 1, now));
  const auto per_min = static_cast<double>(spec.tokens_per_min);
  if (spec.tokens_per_min > 0) {
    // A request that is larger than a minute's worth passes when the bucket is full.
    const double wanted = std::min(static_cast<double>(cost.tokens), per_min);
    const double left = entry.tokens.now_left(per_min, now);
    if (left < wanted) {
      return fail(used_up(entry, "tokens a minute", spec.tokens_per_min,
                          (wanted - left) * 60 / per_min, now));
    }
    entry.tokens.take(static_cast<double>(cost.tokens), per_min, now);
  }
  return Lease(
      std::make_shared<Lease::State>(found->second, static_cast<double>(cost.tokens), sequences));
}

KeyRing::Left KeyRing::left_of(std::int64_t limit, const Bucket& bucket, Instant now) {
  if (limit == 0) return {};
  const auto per_min = static_cast<double>(limit);
  const double left = bucket.now_left(per_min, now);
  return {.limit = limit,
          .left = std::max<std::int64_t>(0, static_cast<std::int64_t>(left)),
          .full_in_s = (per_min - left) * 60 / per_min};
}

KeyRing::Left KeyRing::requests_left(const std::string& id, Instant now) const {
  const auto found = keys_.find(id);
  if (found == keys_.end()) return {};
  return left_of(found->second->key.spec.requests_per_min, found->second->requests, now);
}

KeyRing::Left KeyRing::tokens_left(const std::string& id, Instant now) const {
  const auto found = keys_.find(id);
  if (found == keys_.end()) return {};
  return left_of(found->second->key.spec.tokens_per_min, found->second->tokens, now);
}

KeyRing::Fields KeyRing::fields_of(const Entry& entry, Instant now) {
  Fields fields;
  const auto add = [&fields](const char* what, const Left& left) {
    if (left.limit == 0) return;
    fields.emplace_back(fmt::format("x-ratelimit-limit-{}", what), std::to_string(left.limit));
    fields.emplace_back(fmt::format("x-ratelimit-remaining-{}", what), std::to_string(left.left));
    fields.emplace_back(fmt::format("x-ratelimit-reset-{}", what),
                        fmt::format("{:.3f}s", left.full_in_s));
  };
  add("requests", left_of(entry.key.spec.requests_per_min, entry.requests, now));
  add("tokens", left_of(entry.key.spec.tokens_per_min, entry.tokens, now));
  return fields;
}

KeyRing::Fields KeyRing::left_fields(const std::string& id, Instant now) const {
  const auto found = keys_.find(id);
  return found == keys_.end() ? Fields() : fields_of(*found->second, now);
}

}  // namespace flotilla::gateway
