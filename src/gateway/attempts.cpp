#include "gateway/attempts.h"

#include <algorithm>

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

#include "gateway/key_ring.h"

namespace flotilla::gateway {
namespace {

constexpr Duration kMinute = std::chrono::minutes(1);
constexpr int kWaitS = 60;

// What one sender may change at will is not part of its name.
std::string sender_name(const std::string& address) {
  boost::system::error_code wrong;
  const auto parsed = boost::asio::ip::make_address(address, wrong);
  if (wrong || parsed.is_v4()) return address;
  const auto v6 = parsed.to_v6();
  if (v6.is_v4_mapped())
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, v6).to_string();
  std::string network;
  const auto bytes = v6.to_bytes();
  for (std::size_t i = 0; i < bytes.size() / 2; ++i) network += fmt::format("{:02x}", bytes[i]);
  return network + "/64";
}

void drop_old(std::deque<Instant>& instants, Instant now) {
  while (!instants.empty() && now - instants.front() > kMinute) instants.pop_front();
}

Error too_many(std::size_t count, const std::string& from) {
  return Error{.code = Code::ResourceExhausted,
               .message = fmt::format("{} wrong keys or tokens from {} within a minute; wait a "
                                      "minute",
                                      count, from),
               .retry_after_s = kWaitS};
}

}  // namespace

void Attempts::forget_old(Instant now) {
  while (!entries_.empty() && now - entries_.front().at > kMinute) {
    by_address_.erase(entries_.front().address);
    entries_.pop_front();
  }
  drop_old(all_, now);
  drop_old(told_, now);
}

Attempts::Entry* Attempts::find(const Sender& sender, Instant now) {
  forget_old(now);
  const auto found = by_address_.find(sender_name(sender.address));
  if (found == by_address_.end()) return nullptr;
  auto& failures = found->second->failures;
  while (!failures.empty() && now - failures.front().at > kMinute) failures.pop_front();
  return &*found->second;
}

Result<void> Attempts::check(const Sender& sender, Instant now) {
  const Entry* entry = find(sender, now);
  if (entry != nullptr && entry->failures.size() >= kPerMinute)
    return fail(too_many(kPerMinute, sender.address));
  if (!sender.is_loopback && all_.size() >= kAllPerMinute)
    return fail(too_many(kAllPerMinute, "everywhere"));
  return {};
}

void Attempts::failed(const Sender& sender, std::string_view secret, Instant now) {
  Entry* entry = find(sender, now);
  if (entry == nullptr) {
    if (entries_.size() >= kAddressesMax) {
      by_address_.erase(entries_.front().address);
      entries_.pop_front();
    }
    entries_.push_back({.address = sender_name(sender.address), .failures = {}});
    entry = &entries_.back();
  } else {
    entries_.splice(entries_.end(), entries_, by_address_[entry->address]);
  }
  by_address_[entry->address] = std::prev(entries_.end());
  entry->at = now;
  entry->failures.push_back({.at = now, .hash = hash_of_secret(secret)});
  if (!sender.is_loopback) all_.push_back(now);
}

bool Attempts::knows(const Sender& sender, std::string_view secret, Instant now) {
  const Entry* entry = find(sender, now);
  return entry != nullptr && std::ranges::find(entry->failures, hash_of_secret(secret),
                                               &Failure::hash) != entry->failures.end();
}

bool Attempts::tell(const Sender& sender, Instant now) {
  Entry* entry = find(sender, now);
  if (entry == nullptr || told_.size() >= kToldPerMinute) return false;
  if (entry->told && now - entry->told_at < kMinute) return false;
  entry->told = true;
  entry->told_at = now;
  told_.push_back(now);
  return true;
}

}  // namespace flotilla::gateway
