#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/message.h"

namespace flotilla::gateway {

// Where a request was sent to, by what way, and whose page sent it, as its headers say. Pure.

struct Host {
  std::string name;  // lower case; an IPv6 address with its brackets
  std::string port;  // empty: none was named
};
// nullopt: not a host's name or address with at most a port.
std::optional<Host> parse_host(std::string_view text);
bool is_address(std::string_view name);
bool is_loopback_name(std::string_view name);

// A proxy stands between, as far as it shows: by a header that proxies add, or by HTTP/1.0, which
// nginx speaks unless it is told otherwise and no browser or SDK does.
bool came_by_proxy(const http::Request& request);

// InvalidArgument: there are several, and which one another reader believes is not known.
Result<void> check_one_origin(const http::Request& request);
// A page that this server gave out. Where the client's bytes were encrypted its page came encrypted
// too; where not, a proxy may have taken the encryption off.
bool is_own_origin(const http::Request& request, std::string_view origin);
// A browser says that a page of another site (or of another port here) asks for this.
bool is_from_other_site(const http::Request& request);

}  // namespace flotilla::gateway
