#include "api/schema_lists.h"

#include <algorithm>
#include <vector>

#include "api/schema_words.h"

namespace flotilla::api::schema {
namespace {

// The few values that an item may have; empty: they are not few.
json::Array values_of(const json::Object& items) {
  json::Array values;
  const json::Value* type = find(items, "type");
  for (const auto& member : items) {
    const std::string_view word = view(member.key());
    if (word == "nullable" || (word != "enum" && word != "type" && !is_annotation(word))) return {};
  }
  const json::Value* list = find(items, "enum");
  if (list == nullptr && type != nullptr && *type == "boolean") return {true, false};
  if (list == nullptr || !list->is_array()) return {};
  for (const json::Value& value : list->get_array()) {
    if (type != nullptr && !(type->is_string() && is_type(value, view(type->get_string()))))
      return {};
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  }
  return values;
}

// Each list with each of the values that it does not have behind it.
std::vector<json::Array> longer(const std::vector<json::Array>& lists, const json::Array& values) {
  std::vector<json::Array> out;
  for (const json::Array& list : lists) {
    for (const json::Value& value : values) {
      if (std::ranges::find(list, value) != list.end()) continue;
      out.push_back(list);
      out.back().push_back(value);
      if (out.size() > kDifferentListsMax) return out;
    }
  }
  return out;
}

}  // namespace

std::optional<json::Value> different_lists(const json::Value& root, const json::Value& items,
                                           const json::Object& counts) {
  const json::Value* of = &items;
  if (const json::Object* object = of->if_object()) {
    const json::Value* ref = find(*object, "$ref");
    if (ref != nullptr && ref->is_string()) of = resolve(root, view(ref->get_string()));
  }
  if (of == nullptr || !of->is_object()) return std::nullopt;
  const json::Array values = values_of(of->get_object());
  if (values.empty()) return std::nullopt;
  const json::Value* least = find(counts, "minItems");
  const json::Value* most = find(counts, "maxItems");
  const auto low = static_cast<std::size_t>(least != nullptr ? least->get_int64() : 0);
  std::size_t high = values.size();
  if (most != nullptr) high = std::min(high, static_cast<std::size_t>(most->get_int64()));
  json::Array all;
  std::vector<json::Array> lists = {json::Array()};
  for (std::size_t size = 0; size <= high; ++size) {
    if (size >= low) {
      for (const json::Array& list : lists) all.push_back(list);
    }
    if (size < high) lists = longer(lists, values);
    if (all.size() + lists.size() > 2 * kDifferentListsMax) return std::nullopt;
  }
  if (all.empty() || all.size() > kDifferentListsMax) return std::nullopt;
  return json::Object{{"enum", std::move(all)}};
}

}  // namespace flotilla::api::schema
