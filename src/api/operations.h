#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// What an operator looks at beside clusters: settings, the audit, conversations.
namespace flotilla::api {

struct SettingShown {
  std::string name;
  double value = 0;
  double standard = 0;  // the product's default
  double min = 0;
  double max = 0;
  std::string source;   // flag, environment, stored, file, default
  std::string applies;  // at once, next load, restart
  std::string about;
};
std::string settings_json(const std::vector<SettingShown>& settings);
Result<std::vector<SettingShown>> read_settings(
    std::string_view body);  // as settings_json wrote it
// {NAME: number | null, …}; null takes a stored value back.
using SettingChanges = std::map<std::string, std::optional<double>>;
Result<SettingChanges> parse_settings(std::string_view body);
std::string to_json(const SettingChanges& changes);

struct EventShown {
  std::int64_t at_unix_ms = 0;
  std::string who;
  std::string action;
  int status = 0;
  std::string detail;
};
std::string events_json(const std::vector<EventShown>& events);

struct SessionShown {
  std::string id;
  std::string alias;
  std::string node;  // its home
  std::uint64_t tokens = 0;
  double idle_s = 0;
  bool named = false;  // by the client's session id; else by what was said
};
std::string sessions_json(const std::vector<SessionShown>& sessions);

}  // namespace flotilla::api
