#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace flotilla::model {

// The name of one part of a split model: "base-00002-of-00005", without its extension.
struct SplitName {
  std::string_view base;
  int part = 0;  // from 1
  int parts = 0;
};
std::optional<SplitName> parse_split_name(std::string_view name);
std::string make_split_name(std::string_view base, int part, int parts);

}  // namespace flotilla::model
