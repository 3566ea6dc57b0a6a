#include "api/usage.h"

#include <chrono>

#include <fmt/format.h>

#include "api/json.h"

namespace flotilla::api {
namespace {

constexpr std::int64_t kCountMax = 1'000'000'000'000'000;

json::Object row_object(UsageBy by, const UsageRow& row) {
  json::Object out;
  if (by == UsageBy::Day) {
    out["day"] = iso_day(row.day);
  } else {
    out["key"] = row.key;
    out["name"] = row.name;
  }
  out["requests"] = row.requests;
  out["prompt_tokens"] = row.prompt_tokens;
  out["cached_tokens"] = row.cached_tokens;
  out["generated_tokens"] = row.generated_tokens;
  return out;
}

Result<UsageShown> shown_of(UsageBy by, const json::Object& object) {
  json::Fault fault;
  json::Reader reader(object, fault);
  UsageShown shown;
  UsageRow& row = shown.row;
  row.key = reader.string("key").value_or("");
  row.name = reader.string("name").value_or("");
  row.requests = reader.integer("requests", 0, kCountMax).value_or(0);
  row.prompt_tokens = reader.integer("prompt_tokens", 0, kCountMax).value_or(0);
  row.cached_tokens = reader.integer("cached_tokens", 0, kCountMax).value_or(0);
  row.generated_tokens = reader.integer("generated_tokens", 0, kCountMax).value_or(0);
  if (by == UsageBy::Day) {
    shown.title = reader.string("day").value_or("");
  } else {
    shown.title = row.key.empty() ? "without a key" : row.name.empty() ? row.key : row.name;
  }
  if (fault) return fault.unexpected();
  return shown;
}

}  // namespace

std::string_view to_string(UsageBy by) { return by == UsageBy::Key ? "key" : "day"; }

std::optional<UsageBy> parse_usage_by(std::string_view text) {
  for (const UsageBy by : {UsageBy::Key, UsageBy::Day}) {
    if (text == to_string(by)) return by;
  }
  return std::nullopt;
}

std::string iso_day(std::int64_t day) {
  const std::chrono::year_month_day date{
      std::chrono::sys_days(std::chrono::days(static_cast<int>(day)))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

std::string usage_json(UsageBy by, const std::vector<UsageRow>& rows) {
  json::Array list;
  for (const UsageRow& row : rows) list.push_back(row_object(by, row));
  return json::to_text(json::Object{{"by", to_string(by)}, {"rows", std::move(list)}});
}

// No field needs quotes: ids and names of keys are letters, digits, '.', '_' and '-'.
std::string usage_csv(UsageBy by, const std::vector<UsageRow>& rows) {
  std::string out = by == UsageBy::Day ? "day" : "key,name";
  out += ",requests,prompt_tokens,cached_tokens,generated_tokens\n";
  for (const UsageRow& row : rows) {
    out += by == UsageBy::Day ? iso_day(row.day) : fmt::format("{},{}", row.key, row.name);
    out += fmt::format(",{},{},{},{}\n", row.requests, row.prompt_tokens, row.cached_tokens,
                       row.generated_tokens);
  }
  return out;
}

Result<std::vector<UsageShown>> read_usage(UsageBy by, std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  const json::Value* list = object->if_contains("rows");
  if (list == nullptr || !list->is_array()) {
    return fail(Code::BadGateway, "the answer has no list of rows");
  }
  std::vector<UsageShown> out;
  for (const json::Value& one : list->get_array()) {
    if (!one.is_object()) return fail(Code::BadGateway, "a row of the answer is no object");
    auto shown = shown_of(by, one.get_object());
    if (!shown) return fail(shown.error());
    out.push_back(std::move(*shown));
  }
  return out;
}

}  // namespace flotilla::api
