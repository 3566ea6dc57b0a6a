#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "gateway/routes.h"

namespace flotilla::gateway {

template <class T>
struct ParseBody {
  Result<T> (*parse)(std::string_view) = nullptr;
  std::string body;
  std::pair<std::string, Result<T>> operator()() {
    auto parsed = parse(body);
    return {std::move(body), std::move(parsed)};
  }
};

// `body` as `parse` reads it. A large one is parsed beside the I/O thread.
template <class T>
Task<T> parse_body(Service& service, std::string& body, Result<T> (*parse)(std::string_view)) {
  if (body.size() <= kParseHere) co_return parse(body);
  ParseBody<T> work{.parse = parse, .body = std::move(body)};
  auto [back, parsed] = co_await service.text.run(std::move(work));
  body = std::move(back);
  co_return std::move(parsed);
}

}  // namespace flotilla::gateway
