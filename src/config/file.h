#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/setting.h"

// flotilla.yaml: what a process needs to start.
namespace flotilla::config {

struct FromFile {
  Value value;
  int line = 0;
};
using FileValues = std::map<std::string, FromFile>;  // by Setting::name()

// All that is wrong is in the error, a line each: keys that no setting has (and the nearest one
// that does), values of another type or out of range, what yaml.h refuses. Relative paths begin at
// the file's folder.
Result<FileValues> read_settings(std::span<const Setting> settings, std::string_view text,
                                 const std::filesystem::path& file);

// A file to its end. Of one that is larger than `bytes_max` there is more than that, which
// parse_yaml() refuses.
Result<std::string> read_file(const std::filesystem::path& file,
                              std::size_t bytes_max = kFileBytesMax);

}  // namespace flotilla::config
