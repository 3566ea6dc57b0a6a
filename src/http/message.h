#pragma once

#include <any>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace flotilla::http {

// Header fields in order; names compare without case.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<std::pair<std::string, std::string>> fields) : fields_(fields) {}

  std::optional<std::string_view> find(std::string_view name) const;  // the first of that name
  void add(std::string name, std::string value);
  void set(std::string name, std::string value);  // replaces all of that name
  void remove(std::string_view name);
  void remove_prefix(std::string_view prefix);  // all names that begin with it
  const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

struct Request {
  std::string method = "GET";
  std::string target = "/";  // path and query, percent-encoded, as sent
  Headers headers;
  std::string body;
  std::string peer;               // address without port; "unix" on a unix socket
  bool peer_is_loopback = false;  // unix sockets count
  bool by_tls = false;            // what the client sent was encrypted
  bool http_1_0 = false;          // an old proxy's way, not a browser's
  std::any sender = {};           // who that is, where ServerOptions::admit_body has found it

  std::string_view path() const;  // target up to '?'
  // Decoded value of a query parameter.
  std::optional<std::string> query(std::string_view name) const;
  // Values of a cookie, as sent: a browser may hold several of a name, set for more paths or hosts.
  std::vector<std::string_view> cookies(std::string_view name) const;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
};

Response json_response(int status, std::string body);
// What an answer's head says of its error: when to try again, what is left of quotas.
void add_error_fields(Headers& headers, const Error& error);
// The reason phrase of a status: 404 -> "Not Found".
std::string_view reason_phrase(int status);
std::optional<std::string> percent_decode(std::string_view text);

}  // namespace flotilla::http
