#include "api/server_card.h"

#include "api/json.h"

namespace flotilla::api {

std::string to_json(const ServerCard& card) {
  return json::to_text(
      json::Object{{"name", "flotilla"},
                   {"version", card.version},
                   {"api", json::Array(card.apis.begin(), card.apis.end())},
                   {"auth", card.auth},
                   {"limits", json::Object{{"body_max_bytes", card.body_max_bytes},
                                           {"queue_max", card.queue_max},
                                           {"request_deadline_s", card.request_deadline_s},
                                           {"choices_max", card.choices_max}}}});
}

}  // namespace flotilla::api
