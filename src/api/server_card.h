#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flotilla::api {

// GET /.well-known/inference-engine.json: what a client may know before its first request.
struct ServerCard {
  std::string version;
  std::vector<std::string> apis;  // paths
  std::string auth = "none";      // none, bearer
  std::int64_t body_max_bytes = 0;
  std::int64_t queue_max = 0;
  std::int64_t request_deadline_s = 0;  // to the first token; 0 = none
  int choices_max = 0;
};
std::string to_json(const ServerCard& card);

}  // namespace flotilla::api
