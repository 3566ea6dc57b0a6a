#include "api/renamed_fields.h"

#include <string>

namespace flotilla::api {
namespace {

// Where of `path` the name stands; npos: nowhere.
std::size_t place_of(std::string_view path, std::string_view name) {
  if (name.starts_with('.')) return path.starts_with("tool") ? path.find(name) : std::string::npos;
  const bool whole =
      path.starts_with(name) && (path.size() == name.size() || name.ends_with('.') ||
                                 path[name.size()] == '.' || path[name.size()] == '[');
  return whole ? 0 : std::string::npos;
}

}  // namespace

Error with_names(Error error, std::span<const RenamedField> names) {
  for (const RenamedField& name : names) {
    const std::size_t at = place_of(error.param, name.chat);
    if (at == std::string::npos) continue;
    const std::string before = error.param;
    error.param.replace(at, name.chat.size(), name.theirs);
    for (std::size_t from = error.message.find(before); from != std::string::npos;
         from = error.message.find(before, from + error.param.size()))
      error.message.replace(from, before.size(), error.param);
    break;
  }
  return error;
}

}  // namespace flotilla::api
