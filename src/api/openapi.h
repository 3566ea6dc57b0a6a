#pragma once

#include <string_view>

namespace flotilla::api {

// What GET /openapi.json answers: src/api/openapi.json as bytes of this program, with its version.
// cmake/openapi.cmake writes the definition. A test holds it against the routes.
std::string_view openapi_json();

}  // namespace flotilla::api
