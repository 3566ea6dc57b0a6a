#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// JSON strings written by hand, where a DOM would cost more than the text.
namespace flotilla {

// Bytes of the well-formed UTF-8 character that begins at `at`; 0: none does.
std::size_t character_length(std::string_view text, std::size_t at);

// `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
void append_quoted(std::string& out, std::string_view text);

}  // namespace flotilla
