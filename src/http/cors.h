#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/server.h"

namespace flotilla::http {

// Which other sites' pages may read what the server answers (CORS). Credentials that a browser adds
// by itself (cookies) are never allowed: a page sends the key that its user gave to it.
class Cors {
 public:
  // Each like "https://app.example:8443", compared byte for byte; "*" is every site.
  // InvalidArgument with the remedy for what no browser would send.
  static Result<Cors> make(std::vector<std::string> origins);

  bool allows_any() const { return !origins_.empty(); }
  // Answers the browser's question whether a page may ask (OPTIONS), else runs `next`, whose answer
  // says whether the page may read it.
  Awaitable<void> handle(Exchange& exchange, const Handler& next) const;

 private:
  bool allows(std::string_view origin) const;
  void add_to(Headers& headers, std::string_view origin) const;

  std::vector<std::string> origins_;
  bool everyone_ = false;
};

}  // namespace flotilla::http
