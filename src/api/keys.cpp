#include "api/keys.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/json.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kNameMax = 64;
constexpr std::size_t kModelsMax = 256;
constexpr std::int64_t kQuotaMax = 1'000'000'000'000;

bool is_name(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kNameMax && std::ranges::all_of(text, allowed);
}

void read_models(json::Reader& reader, KeySpec& spec) {
  const json::Array* models = reader.array("models", kModelsMax);
  if (models == nullptr) return;
  for (const json::Value& model : *models) {
    if (!model.is_string() || model.get_string().empty()) {
      reader.refuse("models", "must be a list of aliases");
      return;
    }
    spec.models.emplace_back(model.get_string());
  }
}

Result<KeySpec> spec_of(const json::Object& object, bool strict) {
  json::Fault fault;
  json::Reader reader(object, fault);
  KeySpec spec;
  reader.require("name", "a name for the key");
  spec.name = reader.string("name").value_or("");
  if (!fault && !is_name(spec.name)) {
    reader.refuse("name", "must be 1-64 of letters, digits, '.', '_' and '-'");
  }
  read_models(reader, spec);
  spec.weight = reader.number("weight", 0.01, 100).value_or(1);
  spec.requests_per_min = reader.integer("requests_per_min", 0, kQuotaMax).value_or(0);
  spec.tokens_per_min = reader.integer("tokens_per_min", 0, kQuotaMax).value_or(0);
  spec.max_in_flight = reader.integer("max_in_flight", 0, kQuotaMax).value_or(0);
  spec.cache_group = reader.string("cache_group", kNameMax).value_or("");
  spec.expires_unix_s = reader.integer("expires_unix_s", 0, kQuotaMax).value_or(0);
  if (!fault && !spec.cache_group.empty() && !is_name(spec.cache_group)) {
    reader.refuse("cache_group", "must be 1-64 of letters, digits, '.', '_' and '-'");
  }
  if (strict) reader.refuse_unknown();
  if (fault) return fault.unexpected();
  return spec;
}

json::Object spec_object(const KeySpec& spec) {
  json::Array models(spec.models.begin(), spec.models.end());
  return {{"name", spec.name},
          {"models", std::move(models)},
          {"weight", spec.weight},
          {"requests_per_min", spec.requests_per_min},
          {"tokens_per_min", spec.tokens_per_min},
          {"max_in_flight", spec.max_in_flight},
          {"cache_group", spec.cache_group},
          {"expires_unix_s", spec.expires_unix_s}};
}

json::Object key_object(const KeyShown& key) {
  json::Object out = spec_object(key.spec);
  out["id"] = key.id;
  out["created_unix_s"] = key.created_unix_s;
  out["in_flight"] = key.in_flight;
  return out;
}

Result<KeyShown> shown_of(const json::Object& object) {
  auto spec = spec_of(object, false);
  if (!spec) return fail(spec.error());
  json::Fault fault;
  json::Reader reader(object, fault);
  KeyShown key;
  key.spec = std::move(*spec);
  key.id = reader.string("id").value_or("");
  key.created_unix_s = reader.integer("created_unix_s", 0, kQuotaMax).value_or(0);
  key.in_flight = reader.integer("in_flight", 0, kQuotaMax).value_or(0);
  if (fault) return fault.unexpected();
  return key;
}

}  // namespace

Result<KeySpec> parse_key_spec(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  return spec_of(*object, true);
}

std::string to_json(const KeySpec& spec) { return json::to_text(spec_object(spec)); }

std::string key_json(const KeyShown& key, const std::string& secret) {
  json::Object out = key_object(key);
  if (!secret.empty()) out["secret"] = secret;
  return json::to_text(out);
}

std::string keys_json(const std::vector<KeyShown>& keys) {
  json::Array list;
  for (const KeyShown& key : keys) list.push_back(key_object(key));
  return json::to_text(json::Object{{"keys", std::move(list)}});
}

Result<std::vector<KeyShown>> read_keys(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  std::vector<KeyShown> out;
  const json::Value* list = object->if_contains("keys");
  if (list == nullptr || !list->is_array()) {
    return fail(Code::BadGateway, "the answer has no list of keys");
  }
  for (const json::Value& one : list->get_array()) {
    if (!one.is_object()) return fail(Code::BadGateway, "a key in the answer is no object");
    auto key = shown_of(one.get_object());
    if (!key) return fail(key.error());
    out.push_back(std::move(*key));
  }
  return out;
}

Result<NewKey> read_new_key(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  auto key = shown_of(*object);
  if (!key) return fail(key.error());
  json::Fault fault;
  json::Reader reader(*object, fault);
  NewKey out{.key = std::move(*key), .secret = reader.string("secret").value_or("")};
  if (fault) return fault.unexpected();
  return out;
}

}  // namespace flotilla::api
