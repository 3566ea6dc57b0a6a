#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// What requests came to, as GET /admin/usage tells it.
namespace flotilla::api {

enum class UsageBy { Key, Day };
std::string_view to_string(UsageBy by);  // "key", "day"
std::optional<UsageBy> parse_usage_by(std::string_view text);

struct UsageRow {
  std::string key = {};  // its id; empty: without one, or by day
  std::string name = {};
  std::int64_t day = 0;  // since 1970, UTC; by key: of its newest use
  std::int64_t requests = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  // of the prompts
  std::int64_t generated_tokens = 0;
};

std::string iso_day(std::int64_t day);  // 2026-11-30

std::string usage_json(UsageBy by, const std::vector<UsageRow>& rows);
// One line a row below a line of names.
std::string usage_csv(UsageBy by, const std::vector<UsageRow>& rows);
// As usage_json wrote it; days stay as they are written there.
struct UsageShown {
  std::string title;  // the key's name, its id where it has none, or the day
  UsageRow row;
};
Result<std::vector<UsageShown>> read_usage(UsageBy by, std::string_view body);

}  // namespace flotilla::api
