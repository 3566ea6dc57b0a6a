#pragma once

#include <cstddef>
#include <optional>

#include "api/json.h"

namespace flotilla::api::schema {

inline constexpr std::size_t kDifferentListsMax = 400;

// An array whose items differ (uniqueItems), as the enum of all that it may be: items of an enum,
// or booleans, in every order. `counts`: minItems and maxItems, checked. None: they are more than
// kDifferentListsMax, or the items' schema is another.
std::optional<json::Value> different_lists(const json::Value& root, const json::Value& items,
                                           const json::Object& counts);

}  // namespace flotilla::api::schema
