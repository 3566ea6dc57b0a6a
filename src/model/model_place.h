#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace flotilla::model {

enum class Folders { AsTheyAre, Made };

// Where a model's file of this name belongs in models_dir: a relative path to a .gguf, without
// "..", and no link on the way leads out of it. InvalidArgument and PermissionDenied name the path.
// With Folders::Made the folders to it are there afterwards.
Result<std::filesystem::path> place_for(const std::string& path,
                                        const std::filesystem::path& models_dir, Folders folders);

// Beside it, what has come of it so far.
std::filesystem::path part_file(const std::filesystem::path& place);

}  // namespace flotilla::model
