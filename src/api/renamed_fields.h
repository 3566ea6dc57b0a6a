#pragma once

#include <span>
#include <string_view>

#include "base/error.h"

// A request of another API becomes a chat request, and what is wrong with that is told in the words
// of the request that was sent.
namespace flotilla::api {

struct RenamedField {
  std::string_view chat;    // a path's beginning; one that begins with '.': its first such part
  std::string_view theirs;  // what stands in the request instead
};

// `error` with the first of `names` that fits its param put in the other's place, in the message
// too.
Error with_names(Error error, std::span<const RenamedField> names);

}  // namespace flotilla::api
