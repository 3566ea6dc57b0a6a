#pragma once

#include <any>
#include <utility>
#include <variant>

#include "gateway/guard.h"
#include "http/message.h"

namespace flotilla::gateway {

struct Administrator {};
// Who sends a request, found by its head before its body was read. What http carries for us between
// the two is made and read here alone.
using Sender = std::variant<Caller, Administrator>;

inline std::any as_sender(Sender sender) { return std::any(std::move(sender)); }
// nullptr: nobody has looked yet.
inline const Sender* known_sender(const http::Request& request) {
  return std::any_cast<Sender>(&request.sender);
}

}  // namespace flotilla::gateway
