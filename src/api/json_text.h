#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// JSON written by hand, where a DOM would cost more than the text.
namespace flotilla::api {

// Bytes of the well-formed UTF-8 character that begins at `at`; 0: none does.
std::size_t character_length(std::string_view text, std::size_t at);

// `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
void append_quoted(std::string& out, std::string_view text);
std::string json_string(std::string_view text);

// Rounded to 3 decimals; what is not finite becomes 0.
void append_number(std::string& out, double value);

}  // namespace flotilla::api
