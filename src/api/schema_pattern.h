#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace flotilla::api {

// A regular expression of a JSON schema in the words that llama-common makes rules of, kept to
// characters that need no escape in a JSON string. nullopt: it cannot be held; `why` says what of
// it.
std::optional<std::string> holdable_pattern(std::string_view pattern, std::string& why);

}  // namespace flotilla::api
