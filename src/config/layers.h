#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/file.h"

// Where a setting's value comes from: flag before environment before file before default. (What an
// operator stored on a running server stands between environment and file; the server knows it.)
namespace flotilla::config {

using Environment = std::function<const char*(const char* name)>;

struct Layers {
  std::map<std::string, std::string> flags = {};  // as given, by Setting::name()
  Environment environment = {};
  FileValues file = {};
};

struct Resolved {
  const Setting* setting = nullptr;
  Value value;
  std::string source;  // flag, environment, file, default
  std::string where;   // "line 3", a variable's name
};

// In the table's order. The error names the flag or variable, its value and what it takes.
Result<std::vector<Resolved>> resolve(std::span<const Setting> settings, const Layers& layers);

// flotilla.yaml's JSON schema (draft 2020-12).
std::string json_schema(std::span<const Setting> settings);

}  // namespace flotilla::config
