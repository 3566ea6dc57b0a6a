#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace flotilla::api {

// {"token": …}: what POST /admin/login takes. InvalidArgument names the field.
Result<std::string> parse_login(std::string_view body);

}  // namespace flotilla::api
