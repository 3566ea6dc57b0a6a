#include "api/doctor.h"

#include <algorithm>

#include "api/json.h"
#include "api/json_members.h"

namespace flotilla::api {
const char* to_string(Finding::Level level) {
  switch (level) {
    case Finding::Level::Ok: return "ok";
    case Finding::Level::Warning: return "warning";
    case Finding::Level::Failure: return "failure";
  }
  return "";
}

std::string to_json(const std::vector<Finding>& findings) {
  json::Array rows;
  for (const Finding& finding : findings) {
    rows.push_back(json::Object{{"cluster", finding.cluster},
                                {"node", finding.node},
                                {"check", finding.check},
                                {"level", to_string(finding.level)},
                                {"detail", finding.detail},
                                {"fix", finding.fix}});
  }
  const bool ok = std::ranges::none_of(
      findings, [](const Finding& finding) { return finding.level == Finding::Level::Failure; });
  return json::to_text(json::Object{{"ok", ok}, {"findings", std::move(rows)}});
}

// Lenient: the server may be newer than the command.
Result<std::vector<Finding>> read_findings(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  const json::Value* rows = object->if_contains("findings");
  if (rows == nullptr || !rows->is_array())
    return fail(Code::BadGateway, "the answer is no doctor's");
  std::vector<Finding> out;
  for (const json::Value& row : rows->get_array()) {
    if (!row.is_object()) continue;
    const json::Object& from = row.get_object();
    Finding& finding = out.emplace_back();
    finding.cluster = json::text_of(from, "cluster");
    finding.node = json::text_of(from, "node");
    finding.check = json::text_of(from, "check");
    finding.detail = json::text_of(from, "detail");
    finding.fix = json::text_of(from, "fix");
    const std::string level = json::text_of(from, "level");
    finding.level = level == "ok"        ? Finding::Level::Ok
                    : level == "warning" ? Finding::Level::Warning
                                         : Finding::Level::Failure;
  }
  return out;
}

}  // namespace flotilla::api
