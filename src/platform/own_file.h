#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace flotilla::platform {

// That nobody else can say what `file` holds: by their modes neither it nor a folder on its way, as
// it is named and as links resolve it, may be written by its group or by others. A folder with the
// sticky bit may (/tmp): there one replaces one's own files only, and what lies in it on the way is
// to be `user`'s (who runs us, unless a test says otherwise) or root's, else whoever came first
// says. Of what is no file (a pipe) the mode says nothing. InvalidArgument names the culprit and
// the remedy; Unavailable: it is not there.
Result<void> check_others_cannot_write(const std::filesystem::path& file);
Result<void> check_others_cannot_write(const std::filesystem::path& file, std::uint32_t user);

}  // namespace flotilla::platform
