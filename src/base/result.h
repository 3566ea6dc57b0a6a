#pragma once

#include <expected>
#include <string>
#include <utility>

#include "base/error.h"

namespace flotilla {

// A value, or the expected failure that took its place. (g++ 12: no and_then; test and return.)
template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Error error) { return std::unexpected<Error>(std::move(error)); }

inline std::unexpected<Error> fail(Code code, std::string message) {
  return std::unexpected<Error>(Error{.code = code, .message = std::move(message)});
}

}  // namespace flotilla
