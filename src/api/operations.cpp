#include "api/operations.h"

#include <limits>

#include <fmt/format.h>

#include "api/json.h"

namespace flotilla::api {

std::string settings_json(const std::vector<SettingShown>& settings) {
  json::Array list;
  for (const SettingShown& setting : settings) {
    list.push_back(json::Object{{"name", setting.name},
                                {"value", setting.value},
                                {"default", setting.standard},
                                {"min", setting.min},
                                {"max", setting.max},
                                {"source", setting.source},
                                {"applies", setting.applies},
                                {"about", setting.about}});
  }
  return json::to_text(json::Object{{"settings", std::move(list)}});
}

Result<std::vector<SettingShown>> read_settings(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  const json::Value* list = object->if_contains("settings");
  if (list == nullptr || !list->is_array())
    return fail(Code::BadGateway, "the answer has no list of settings");
  constexpr double most = std::numeric_limits<double>::max();
  std::vector<SettingShown> out;
  for (const json::Value& one : list->get_array()) {
    if (!one.is_object()) return fail(Code::BadGateway, "a setting in the answer is no object");
    json::Fault fault;
    json::Reader reader(one.get_object(), fault);
    SettingShown& setting = out.emplace_back();
    setting.name = reader.string("name").value_or("");
    setting.value = reader.number("value", -most, most).value_or(0);
    setting.standard = reader.number("default", -most, most).value_or(0);
    setting.min = reader.number("min", -most, most).value_or(-most);
    setting.max = reader.number("max", -most, most).value_or(most);
    setting.source = reader.string("source").value_or("");
    setting.applies = reader.string("applies").value_or("");
    setting.about = reader.string("about").value_or("");
    if (fault) return fault.unexpected();
  }
  return out;
}

std::string to_json(const SettingChanges& changes) {
  json::Object out;
  for (const auto& [name, value] : changes) out[name] = value ? json::Value(*value) : json::Value();
  return json::to_text(out);
}

Result<SettingChanges> parse_settings(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  SettingChanges changes;
  for (const auto& [key, value] : *object) {
    const std::string name(key);
    if (value.is_null()) {
      changes[name] = std::nullopt;
    } else if (value.is_number()) {
      changes[name] = value.to_number<double>();
    } else {
      return fail(Error{.code = Code::InvalidArgument,
                        .message = fmt::format("{} is {}; it takes a number, or null to take the "
                                               "stored one back",
                                               name, json::shown(value)),
                        .param = name});
    }
  }
  return changes;
}

std::string events_json(const std::vector<EventShown>& events) {
  json::Array list;
  for (const EventShown& event : events) {
    list.push_back(
        json::Object{{"at_unix_ms", event.at_unix_ms},
                     {"who", event.who},
                     {"action", event.action},
                     {"status", event.status},
                     {"detail", event.detail.empty() ? json::Value() : json::Value(event.detail)}});
  }
  return json::to_text(json::Object{{"events", std::move(list)}});
}

std::string sessions_json(const std::vector<SessionShown>& sessions) {
  json::Array list;
  for (const SessionShown& session : sessions) {
    list.push_back(json::Object{{"id", session.id},
                                {"alias", session.alias},
                                {"node", session.node},
                                {"tokens", session.tokens},
                                {"idle_s", session.idle_s},
                                {"named", session.named}});
  }
  return json::to_text(json::Object{{"sessions", std::move(list)}});
}

}  // namespace flotilla::api
