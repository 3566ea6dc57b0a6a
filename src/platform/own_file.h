#pragma once

#include <filesystem>

#include "base/result.h"

namespace flotilla::platform {

// That nobody else can say what `file` holds: by their modes neither it nor a folder on its way, as
// it is named and as links resolve it, may be written by its group or by others. A folder with the
// sticky bit may (/tmp): there one replaces one's own files only. What is no file (a pipe) is not
// looked at. InvalidArgument names the culprit and the remedy; Unavailable: it is not there.
Result<void> check_others_cannot_write(const std::filesystem::path& file);

}  // namespace flotilla::platform
