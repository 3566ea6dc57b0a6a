#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "config/yaml.h"

// Single values in YAML: what a word without quotes is, and how to write one.
namespace flotilla::config {

Node plain_scalar(std::string_view word);

// A value as YAML, without quotes where it stays what it is.
std::string scalar_text(const Node& node);

// Where a text stops being UTF-8, or has a NUL; npos: nowhere.
std::size_t first_bad_byte(std::string_view text);

}  // namespace flotilla::config
