#pragma once

#include <string>
#include <string_view>

#include "base/json_text.h"

// JSON written by hand, where a DOM would cost more than the text. Strings are base's.
namespace flotilla::api {

std::string json_string(std::string_view text);

// Rounded to 3 decimals; what is not finite becomes 0.
void append_number(std::string& out, double value);

}  // namespace flotilla::api
