#pragma once

#include <string_view>

#include "api/json.h"

// JSON that holds what a model wrote: any text may be in it, so U+0000 is taken. Else as json.h.
namespace flotilla::api::json {

Result<Value> parse_answer(std::string_view text);
Result<Object> parse_answer_object(std::string_view text);

}  // namespace flotilla::api::json
