#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "api/engine_template.h"
#include "base/result.h"

namespace flotilla::gateway {

struct GatewayOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;               // 0 = a free one
  std::filesystem::path state_dir;         // one gateway a directory
  std::filesystem::path admin_token_file;  // empty = none
  // Names by which /admin is reached, besides loopback's and `host`.
  std::vector<std::string> admin_hosts;
  bool allow_anonymous = false;           // /v1 without a key from anywhere
  std::filesystem::path tls_certificate;  // PEM, with its chain; empty = plain HTTP
  std::filesystem::path tls_key;
  std::vector<std::string> trusted_proxies;  // addresses and ranges
  std::vector<std::string> cors_origins;     // other sites whose pages may use /v1
  std::map<std::string, double> knob_flags;  // values by flag, and by file
  std::map<std::string, double> knob_file;
  std::vector<api::EngineTemplate> engines;  // that agents may start
  std::string version;
};

// Serves until SIGTERM or SIGINT, drains, returns 0. What keeps it from starting is an Error:
// another server on the state directory (Conflict, naming it), the port in use, a knob out of
// range, an address that is not loopback without a token file.
Result<int> run_gateway(const GatewayOptions& options);

}  // namespace flotilla::gateway
