#include <charconv>

#include "http/client.h"

namespace flotilla::http {
namespace {

std::unexpected<Error> bad_url(std::string_view url, std::string_view why) {
  return fail(Code::InvalidArgument, "URL '" + std::string(url) + "': " + std::string(why) +
                                         "; it should look like http://host:port/v1");
}

}  // namespace

Result<Endpoint> parse_url(std::string_view url) {
  Endpoint endpoint;
  std::string_view rest = url;
  if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
    endpoint.tls = true;
    endpoint.port = 443;
  } else {
    return bad_url(url, "it begins with neither http:// nor https://");
  }
  for (const char c : rest) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) return bad_url(url, "it has a space");
  }
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return bad_url(url, "it has a query or fragment");
  }
  std::string_view authority = rest.substr(0, rest.find('/'));
  endpoint.base_path = rest.substr(authority.size());
  while (endpoint.base_path.ends_with('/')) endpoint.base_path.pop_back();
  if (authority.find('@') != std::string_view::npos) {
    return bad_url(url, "it has a user name, which is not supported");
  }
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return bad_url(url, "']' is missing");
    endpoint.host = authority.substr(1, close - 1);
    port = authority.substr(close + 1);
    if (!port.empty() && !port.starts_with(':')) return bad_url(url, "bad port");
  } else {
    const std::size_t colon = authority.find(':');
    endpoint.host = authority.substr(0, colon);
    port = colon == std::string_view::npos ? "" : authority.substr(colon);
  }
  if (endpoint.host.empty()) return bad_url(url, "the host is missing");
  if (port.empty()) return endpoint;
  port.remove_prefix(1);
  std::uint16_t number = 0;
  const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || stop != port.data() + port.size() || number == 0) {
    return bad_url(url, "the port is not 1 to 65535");
  }
  endpoint.port = number;
  return endpoint;
}

}  // namespace flotilla::http
