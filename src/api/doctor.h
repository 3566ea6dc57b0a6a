#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// GET /admin/doctor: what was looked at, and what would do about what is wrong.
namespace flotilla::api {

struct Finding {
  enum class Level { Ok, Warning, Failure };
  std::string cluster;
  std::string node;
  std::string check;  // link, version, model NAME, memory, disk
  Level level = Level::Ok;
  std::string detail;
  std::string fix;  // one; empty where nothing is wrong
};

std::string to_json(const std::vector<Finding>& findings);
Result<std::vector<Finding>> read_findings(std::string_view body);
const char* to_string(Finding::Level level);

}  // namespace flotilla::api
