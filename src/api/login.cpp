#include "api/login.h"

#include "api/json.h"

namespace flotilla::api {

Result<std::string> parse_login(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader reader(*object, fault);
  reader.require("token", "the admin token");
  std::string token = reader.string("token", 4096).value_or("");
  reader.refuse_unknown();
  if (fault) return fault.unexpected();
  return token;
}

}  // namespace flotilla::api
