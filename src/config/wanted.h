#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/declared.h"
#include "api/keys.h"
#include "api/operations.h"
#include "config/layers.h"
#include "config/yaml.h"

// The file of `flotilla apply` and `flotilla export`: what a server is to have declared. Its
// clusters, pools and keys have the fields of /admin, and are read by the same code.
namespace flotilla::config {

// Whatever a server has can be written out, and that can be read again: keys by the ten thousands
// are more than a file of settings may hold.
inline constexpr Limits kFleetLimits{.bytes_max = 64 << 20, .values_max = 4'000'000};

struct WantedSetting {
  double value = 0;
  std::string where;  // FILE:LINE:COLUMN
};

// A section that the file does not have is empty here, and nothing is done about it.
struct Wanted {
  std::optional<std::vector<api::ClusterSpec>> clusters;
  std::optional<std::vector<api::DeclaredPool>> pools;  // each with an alias
  std::optional<std::vector<api::KeySpec>> keys;
  std::optional<std::map<std::string, WantedSetting>> settings;
};

// The keys of http nodes come from the variable or file that the node's api_key_env or api_key_file
// names. All that is wrong is in the error, a line each, and none shows a key.
Result<Wanted> read_wanted(std::string_view text, const std::filesystem::path& file,
                           const Environment& environment);

// What a server has, as such a file: the same state gives the same text. Without secrets.
std::string export_text(const api::Declared& declared, const std::vector<api::KeyShown>& keys,
                        const std::vector<api::SettingShown>& settings);

}  // namespace flotilla::config
