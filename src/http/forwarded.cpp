#include "http/forwarded.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include <boost/asio/ip/address.hpp>

namespace flotilla::http {
namespace {

namespace ip = boost::asio::ip;

// What a walk along the proxies finds: each hop's client, as the proxy behind it saw it.
struct Hop {
  std::string_view address;  // as it stands there, perhaps with a port
  std::string_view proto;
};

bool same(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// IPv4 that came by an IPv6 socket is IPv4. A zone ("%eth0") means something on one machine only.
std::optional<ip::address> read_address(std::string_view text) {
  if (text.size() > 45 || text.find('%') != std::string_view::npos) return std::nullopt;
  boost::system::error_code error;
  ip::address address = ip::make_address(std::string(text), error);
  if (error) return std::nullopt;
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = ip::make_address_v4(ip::v4_mapped, address.to_v6());
  }
  return address;
}

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80"; else nothing
// ("unknown", "_hidden").
std::optional<std::string> read_hop_address(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view port = text.substr(close + 1);
    if (!port.empty() && (port.front() != ':' || !is_port(port.substr(1)))) return std::nullopt;
    text = text.substr(1, close - 1);
    if (text.find(':') == std::string_view::npos) return std::nullopt;
  } else if (std::ranges::count(text, ':') == 1) {
    const std::size_t colon = text.find(':');
    if (!is_port(text.substr(colon + 1))) return std::nullopt;
    text = text.substr(0, colon);
  }
  const auto address = read_address(text);
  if (!address) return std::nullopt;
  return address->to_string();
}

std::vector<std::string_view> values_of(const Headers& headers, std::string_view name) {
  std::vector<std::string_view> values;
  for (const auto& [key, value] : headers.fields()) {
    if (same(key, name)) values.push_back(value);
  }
  return values;
}

void add_hops(std::string_view list, std::vector<Hop>& hops) {
  while (true) {
    const std::size_t comma = list.find(',');
    hops.push_back({.address = trim(list.substr(0, comma)), .proto = {}});
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

// The end of a token or quoted string at the front of `text`; nothing where it has no end.
std::optional<std::size_t> end_of_value(std::string_view text) {
  if (!text.starts_with('"')) return std::min(text.find_first_of(",;"), text.size());
  const std::size_t close = text.find('"', 1);
  // Addresses need no escapes: who writes one has something else in mind.
  if (close == std::string_view::npos || text.substr(0, close).find('\\') != text.npos) {
    return std::nullopt;
  }
  return close + 1;
}

// RFC 7239: `for=192.0.2.1;proto=https, for="[2001:db8::1]:80"`. false: malformed.
bool add_forwarded_hops(std::string_view text, std::vector<Hop>& hops) {
  Hop hop;
  while (true) {
    text = trim(text);
    const std::size_t equals = text.find_first_of("=,;");
    if (equals == std::string_view::npos || text[equals] != '=') return false;
    const std::string_view name = text.substr(0, equals);
    text.remove_prefix(equals + 1);
    const auto end = end_of_value(text);
    if (!end) return false;
    std::string_view value = trim(text.substr(0, *end));
    if (value.starts_with('"')) value = value.substr(1, value.size() - 2);
    if (same(name, "for")) hop.address = value;
    if (same(name, "proto")) hop.proto = value;
    text = trim(text.substr(*end));
    if (text.empty() || text.front() == ',') hops.push_back(std::exchange(hop, Hop()));
    if (text.empty()) return true;
    if (text.front() != ',' && text.front() != ';') return false;
    text.remove_prefix(1);
  }
}

bool is_trusted(std::string_view address, const std::vector<AddressRange>& trusted) {
  return std::ranges::any_of(
      trusted, [address](const AddressRange& range) { return range.contains(address); });
}

Remote walk(Remote client, const std::vector<Hop>& hops, const std::vector<AddressRange>& trusted) {
  for (auto hop = hops.rbegin(); hop != hops.rend() && is_trusted(client.address, trusted); ++hop) {
    auto address = read_hop_address(hop->address);
    if (!address) break;
    client.address = std::move(*address);
    client.forwarded = true;
    if (!hop->proto.empty()) client.by_tls = same(hop->proto, "https");
  }
  return client;
}

std::optional<Remote> by_x_forwarded(const Remote& peer, const Headers& headers,
                                     const std::vector<AddressRange>& trusted) {
  const auto lists = values_of(headers, "X-Forwarded-For");
  const auto schemes = values_of(headers, "X-Forwarded-Proto");
  if (lists.empty() && schemes.empty()) return std::nullopt;
  std::vector<Hop> hops;
  for (const std::string_view list : lists) add_hops(list, hops);
  Remote client = walk(peer, hops, trusted);
  if (!schemes.empty()) {
    const std::string_view last = schemes.back();
    client.by_tls = same(trim(last.substr(last.rfind(',') + 1)), "https");
  }
  return client;
}

std::optional<Remote> by_forwarded(const Remote& peer, const Headers& headers,
                                   const std::vector<AddressRange>& trusted) {
  const auto lists = values_of(headers, "Forwarded");
  if (lists.empty()) return std::nullopt;
  std::vector<Hop> hops;
  for (const std::string_view list : lists) {
    if (!add_forwarded_hops(list, hops)) return peer;
  }
  return walk(peer, hops, trusted);
}

}  // namespace

Result<AddressRange> AddressRange::parse(std::string_view text) {
  const auto bad = [text](const std::string& why) {
    return fail(Code::InvalidArgument,
                "'" + std::string(text) + "' " + why +
                    "; write an address or a range such as 10.0.0.0/8 or 2001:db8::/32");
  };
  const std::size_t slash = text.find('/');
  const auto address = read_address(text.substr(0, slash));
  if (!address) return bad("does not begin with an IP address");
  AddressRange range;
  range.v4_ = address->is_v4();
  const unsigned bits = range.v4_ ? 32 : 128;
  range.prefix_ = bits;
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, range.prefix_);
    if (digits.empty() || error != std::errc() || stop != end || range.prefix_ > bits) {
      return bad("has no prefix length from 0 to " + std::to_string(bits) + " behind its '/'");
    }
  }
  if (range.v4_) {
    std::ranges::copy(address->to_v4().to_bytes(), range.address_.begin());
  } else {
    std::ranges::copy(address->to_v6().to_bytes(), range.address_.begin());
  }
  for (unsigned bit = range.prefix_; bit < bits; ++bit) {
    if ((range.address_[bit / 8] >> (7 - bit % 8) & 1) != 0) {
      return bad("has bits set behind its prefix of " + std::to_string(range.prefix_));
    }
  }
  return range;
}

bool AddressRange::contains(std::string_view text) const {
  const auto address = read_address(text);
  if (!address || address->is_v4() != v4_) return false;
  std::array<std::uint8_t, 16> bytes{};
  if (v4_) {
    std::ranges::copy(address->to_v4().to_bytes(), bytes.begin());
  } else {
    std::ranges::copy(address->to_v6().to_bytes(), bytes.begin());
  }
  const unsigned whole = prefix_ / 8;
  if (!std::equal(bytes.begin(), bytes.begin() + whole, address_.begin())) return false;
  const unsigned rest = prefix_ % 8;
  return rest == 0 || (bytes[whole] ^ address_[whole]) >> (8 - rest) == 0;
}

std::string network_of(const std::string& address) {
  const auto read = read_address(address);
  if (!read || read->is_v4()) return address;
  auto bytes = read->to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return ip::make_address_v6(bytes).to_string() + "/64";
}

Remote find_remote(Remote peer, const Headers& headers, const std::vector<AddressRange>& trusted) {
  if (!is_trusted(peer.address, trusted)) return peer;
  auto one = by_x_forwarded(peer, headers, trusted);
  auto other = by_forwarded(peer, headers, trusted);
  if (!one && !other) return peer;
  if (!one || !other) return one ? std::move(*one) : std::move(*other);
  if (one->address != other->address) return peer;
  one->by_tls = one->by_tls && other->by_tls;
  return std::move(*one);
}

}  // namespace flotilla::http
