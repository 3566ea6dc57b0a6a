#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/answer_form.h"
#include "base/result.h"

// What GET /v1/responses/{id} and …/input_items may be asked.
namespace flotilla::api {

// The value of a query's parameter.
using QueryValue = std::function<std::optional<std::string>(std::string_view name)>;

struct ItemsAsked {
  bool newest_first = true;
  std::size_t limit = 20;
  std::string after;  // id of the item before the first one
};
Result<ItemsAsked> read_items_asked(const QueryValue& query);
// {"object":"list","data":[…]} of a kept answer's input; InvalidArgument: it has no item `after`.
Result<std::string> input_items_json(const KeptAnswer& kept, const ItemsAsked& asked);

// A kept answer comes whole, with what its own request asked for: InvalidArgument for more.
Result<void> check_response_query(const QueryValue& query);

}  // namespace flotilla::api
