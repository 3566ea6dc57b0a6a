#include "api/json_members.h"

namespace flotilla::api::json {

const Value* member(const Object& object, std::string_view name) {
  return object.if_contains({name.data(), name.size()});
}

const Array* array_of(const Object& object, std::string_view name) {
  const Value* value = member(object, name);
  return value != nullptr ? value->if_array() : nullptr;
}

const Object* object_of(const Object& object, std::string_view name) {
  const Value* value = member(object, name);
  return value != nullptr ? value->if_object() : nullptr;
}

std::string text_of(const Object& object, std::string_view name, std::string_view otherwise) {
  const Value* value = member(object, name);
  const bool is_text = value != nullptr && value->is_string();
  return std::string(is_text ? std::string_view(value->get_string()) : otherwise);
}

std::int64_t integer_of(const Object& object, std::string_view name) {
  const Value* value = member(object, name);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

bool flag_of(const Object& object, std::string_view name) {
  const Value* value = member(object, name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

}  // namespace flotilla::api::json
