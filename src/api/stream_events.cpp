#include "api/stream_events.h"

namespace flotilla::api {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  const auto begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

}  // namespace

std::vector<std::string_view> stream_events(std::string_view body) {
  constexpr std::string_view kData = "data:";
  std::vector<std::string_view> events;
  while (!body.empty()) {
    const auto end = body.find('\n');
    const std::string_view line = body.substr(0, end);
    body.remove_prefix(end == std::string_view::npos ? body.size() : end + 1);
    if (line.starts_with(kData)) events.push_back(trimmed(line.substr(kData.size())));
  }
  return events;
}

}  // namespace flotilla::api
