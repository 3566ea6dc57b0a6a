#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/message.h"

// Who asks, where proxies stand between.
namespace flotilla::http {

// Addresses with a common beginning, IPv4 or IPv6.
class AddressRange {
 public:
  // "10.0.0.0/8", "2001:db8::/32"; a lone address stands for itself. InvalidArgument with the
  // remedy, also where bits are set behind the prefix.
  static Result<AddressRange> parse(std::string_view text);
  // Text that is no address is in no range.
  bool contains(std::string_view address) const;

 private:
  bool v4_ = false;
  unsigned prefix_ = 0;                     // bits that count, from the front
  std::array<std::uint8_t, 16> address_{};  // IPv4: the first four
};

// What one holder of addresses has at least: an IPv4 address alone, of IPv6 the /64 it is in. Other
// text stands for itself.
std::string network_of(const std::string& address);

// Who is at the other end.
struct Remote {
  std::string address;
  bool by_tls = false;
  bool forwarded = false;  // a trusted proxy told of it
};

// `peer` is who connected. If it is one of the trusted proxies, the client is the rightmost address
// of X-Forwarded-For (or Forwarded) that is none of them: what stands further left was written by
// somebody whom nobody vouches for. Where an address cannot be read, the last trusted one is the
// client. Where both headers are there and disagree neither is believed: a proxy writes one of them
// and passes on the other as the client sent it. The scheme comes from X-Forwarded-Proto, or from
// Forwarded's proto.
Remote find_remote(Remote peer, const Headers& headers, const std::vector<AddressRange>& trusted);

}  // namespace flotilla::http
