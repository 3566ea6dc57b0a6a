#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/json.h"

// Members of objects that others made (runners, other servers), read leniently: one that is not
// there, or of another type, counts as nothing. Requests are read by json::Reader instead.
namespace flotilla::api::json {

const Value* member(const Object& object, std::string_view name);  // null: there is none
const Array* array_of(const Object& object, std::string_view name);
const Object* object_of(const Object& object, std::string_view name);
std::string text_of(const Object& object, std::string_view name, std::string_view otherwise = "");
std::int64_t integer_of(const Object& object, std::string_view name);
bool flag_of(const Object& object, std::string_view name);

}  // namespace flotilla::api::json
