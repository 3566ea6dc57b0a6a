#pragma once

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace flotilla::http {

// The values of all header fields of a name (given in lower case), in their order.
inline std::vector<std::string_view> values_of(const Headers& headers, std::string_view name) {
  const auto same = [](char field, char wanted) {
    return std::tolower(static_cast<unsigned char>(field)) == wanted;
  };
  std::vector<std::string_view> values;
  for (const auto& [key, value] : headers.fields())
    if (std::ranges::equal(key, name, same)) values.emplace_back(value);
  return values;
}

}  // namespace flotilla::http
