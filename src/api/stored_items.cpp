#include "api/stored_items.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/json_answer.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kNameMax = 512;

// "msg_ID_3" is of "resp_ID", whatever an item of it is called. Empty: it is no id of ours.
std::string answer_of(std::string_view item) {
  const auto first = item.find('_');
  const auto last = item.rfind('_');
  if (first == item.npos || last == first) return {};
  return fmt::format("resp_{}", item.substr(first + 1, last - first - 1));
}

// Of a list's member; of what is none: nothing.
json::Array list_of(const json::Object& object, const char* name) {
  const json::Value* value = object.if_contains(name);
  return value != nullptr && value->is_array() ? value->get_array() : json::Array{};
}

}  // namespace

json::Array input_items(const KeptAnswer& kept) {
  const auto items = json::parse(kept.input);
  json::Array out;
  for (const json::Value& item : items && items->is_array() ? items->get_array() : json::Array{}) {
    json::Object shown = item.is_object() ? item.get_object() : json::Object{};
    if (!shown.contains("type")) shown["type"] = "message";
    const json::Value* id = shown.if_contains("id");
    if (id == nullptr || !id->is_string())
      shown["id"] = fmt::format("item_{}_{}", kept.id.substr(kept.id.find('_') + 1), out.size());
    out.push_back(std::move(shown));
  }
  return out;
}

bool is_item_reference(const json::Object& item) {
  const json::Value* type = item.if_contains("type");
  if (type == nullptr || type->is_null()) return item.contains("id") && !item.contains("role");
  return *type == "item_reference";
}

StoredItems::StoredItems(const std::vector<KeptAnswer>* answers) : asked_(answers != nullptr) {
  if (answers == nullptr) return;
  for (const KeptAnswer& kept : *answers) {
    add(input_items(kept));
    if (const auto body = json::parse_answer_object(kept.body)) add(list_of(*body, "output"));
  }
}

void StoredItems::add(json::Array items) {
  for (json::Value& item : items) {
    json::Object* object = item.if_object();
    const json::Value* id = object == nullptr ? nullptr : object->if_contains("id");
    if (id == nullptr || !id->is_string()) continue;
    std::string name(id->get_string());
    items_.insert_or_assign(std::move(name), std::move(*object));
  }
}

const json::Object* StoredItems::find(const json::Object& reference, const std::string& path,
                                      json::Fault& fault) {
  json::Reader in(reference, fault, path);
  in.require("id", "the id of an item");
  const std::string id = in.string("id", kNameMax).value_or("");
  if (fault) return nullptr;
  if (!named_.insert(id).second) {
    in.refuse("id", "must not be that of an item that the input names already");
    return nullptr;
  }
  if (const auto found = items_.find(id); found != items_.end()) return &found->second;
  std::string answer = answer_of(id);
  if (asked_ || answer.empty()) {
    fault.set(in.path_of("id"),
              fmt::format("there is no item {}: its response was not stored, or the server has "
                          "forgotten it since",
                          json::shown(json::Value(id))),
              "item_not_found");
  } else if (std::ranges::find(needs_, answer) == needs_.end()) {
    needs_.push_back(std::move(answer));
  }
  return nullptr;
}

}  // namespace flotilla::api
