#include "api/json_text.h"

#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace flotilla::api {

std::string json_string(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  append_quoted(out, text);
  return out;
}

void append_number(std::string& out, double value) {
  if (!std::isfinite(value)) value = 0;
  // Integers are exact in text below 2^53; above, a rounded figure is a figure too.
  const double rounded = std::abs(value) < 1e12 ? std::round(value * 1000) / 1000 : value;
  fmt::format_to(std::back_inserter(out), "{}", rounded == 0 ? 0.0 : rounded);
}

}  // namespace flotilla::api
