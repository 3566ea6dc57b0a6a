#include "base/numbers.h"

#include <cmath>
#include <cstdlib>
#include <string>

namespace flotilla {

std::optional<double> parse_double(std::string_view text) {
  // strtod also takes blanks, hexadecimal digits, "inf" and "nan".
  if (text.empty() || text.find_first_not_of("+-.0123456789eE") != std::string_view::npos) {
    return std::nullopt;
  }
  const std::string terminated(text);
  char* end = nullptr;
  const double value = std::strtod(terminated.c_str(), &end);
  if (end != terminated.c_str() + terminated.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace flotilla
