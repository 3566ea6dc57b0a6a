#pragma once

#include <optional>
#include <string_view>

namespace flotilla {

// The whole of `text` as a finite decimal number ("12", "-0.5", "1e3"); none: anything else.
// For doubles: libc++ has no std::from_chars for them.
std::optional<double> parse_double(std::string_view text);

}  // namespace flotilla
