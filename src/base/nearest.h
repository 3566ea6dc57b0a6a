#pragma once

#include <span>
#include <string>
#include <string_view>

namespace flotilla {

// The known word that `word` was probably meant to be: fewest letters wrong, missing, too many or
// swapped, at most a third of them. Empty: none is near.
std::string nearest_word(std::string_view word, std::span<const std::string_view> known);

// " did you mean \"port\"?", or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace flotilla
