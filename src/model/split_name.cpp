#include "model/split_name.h"

#include <charconv>

#include <fmt/format.h>

namespace flotilla::model {
namespace {

std::optional<int> five_digits(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.size() != 5 || error != std::errc{} || end != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

}  // namespace

std::optional<SplitName> parse_split_name(std::string_view name) {
  constexpr std::string_view kShape = "-00001-of-00002";
  if (name.size() <= kShape.size()) return std::nullopt;
  const std::string_view tail = name.substr(name.size() - kShape.size());
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-") return std::nullopt;
  const auto part = five_digits(tail.substr(1, 5));
  const auto parts = five_digits(tail.substr(10));
  if (!part || !parts || *part < 1 || *part > *parts) return std::nullopt;
  return SplitName{name.substr(0, name.size() - kShape.size()), *part, *parts};
}

std::string make_split_name(std::string_view base, int part, int parts) {
  return fmt::format("{}-{:05}-of-{:05}", base, part, parts);
}

}  // namespace flotilla::model
