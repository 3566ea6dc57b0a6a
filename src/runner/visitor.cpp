#include "runner/visitor.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace flotilla::runner {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool only(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

// "localhost", "127.0.0.1", "[::1]", each perhaps with ":8081"; other addresses too, but no names.
bool is_localhost_or_address(const std::string& host) {
  const std::size_t behind = host.starts_with('[') ? host.find(']') + 1 : host.find(':');
  const std::string_view name = std::string_view(host).substr(0, behind);
  const std::string_view rest = std::string_view(host).substr(std::min(behind, host.size()));
  if (!rest.empty() && (rest[0] != ':' || !only(rest.substr(1), "0123456789"))) return false;
  if (name.starts_with('['))
    return name.ends_with(']') && only(name.substr(1, name.size() - 2), "0123456789abcdef:.");
  return name == "localhost" || only(name, "0123456789.");
}

bool is_json(const http::Request& request) {
  std::string type = lower(request.headers.find("Content-Type").value_or(""));
  type = type.substr(0, type.find(';'));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  return type == "application/json";
}

}  // namespace

Result<void> check_visitor(const http::Request& request) {
  if (request.peer == "unix") return {};
  const std::string_view host = request.headers.find("Host").value_or("");
  if (!is_localhost_or_address(lower(host))) {
    return fail(Code::PermissionDenied,
                fmt::format("Host \"{}\" is a name, which another site may have; reach this runner "
                            "as localhost or by its address",
                            host.substr(0, 200)));
  }
  if (request.path() == "/runner/drain") {
    return fail(Code::PermissionDenied,
                "draining is for who has the runner's unix socket; end this runner by SIGTERM");
  }
  if (request.method == "POST" && !is_json(request)) {
    return fail(Code::UnsupportedMedia,
                fmt::format("Content-Type is \"{}\"; send the body as JSON with Content-Type: "
                            "application/json",
                            request.headers.find("Content-Type").value_or("").substr(0, 200)));
  }
  return {};
}

}  // namespace flotilla::runner
