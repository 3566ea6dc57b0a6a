#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cli/flags.h"
#include "config/layers.h"
#include "config/yaml.h"
#include "gateway/gateway.h"

namespace flotilla::cli {

struct ServeOptions {
  gateway::GatewayOptions gateway;
  config::Node engines;  // as the file has them
  std::string log_level = "info";
  std::string log_format = "text";
  std::filesystem::path log_file;  // empty = stderr
  std::uint64_t log_file_bytes = 10'000'000;
  std::size_t log_files = 5;
  std::string ssh_program = "ssh";
  std::filesystem::path ssh_config;  // empty = the user's
};

// What `flotilla serve` can be told, by flag, environment and flotilla.yaml: one table for all
// three, for --help, for the JSON schema and for `flotilla config`. It must outlive the App that
// has its flags.
class ServeSettings {
 public:
  ServeSettings();
  ServeSettings(const ServeSettings&) = delete;
  ServeSettings& operator=(const ServeSettings&) = delete;

  const std::vector<config::Setting>& table() const { return table_; }
  void add_flags(const App& command);

  // --config, else $FLOTILLA_CONFIG, else /etc/flotilla/flotilla.yaml if it is there; else empty.
  std::filesystem::path file() const;
  // After the flags were read. In the table's order.
  Result<std::vector<config::Resolved>> resolve();
  Result<ServeOptions> options();

 private:
  Result<void> read_layers();

  ServeOptions options_;
  std::vector<config::Setting> table_;
  config::Layers layers_;
  // What the flags are read into.
  std::string config_;
  std::map<std::string, std::vector<std::string>> texts_;
  std::map<std::string, bool> switches_;
  std::vector<std::string> knobs_;
  std::map<std::string, Option> flags_;  // by Setting::name()
};

}  // namespace flotilla::cli
