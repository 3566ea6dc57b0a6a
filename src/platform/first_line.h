#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"

namespace flotilla::platform {

// The first line of a file or of a pipe (`<(cat token)`), without its end and "\r" before it. What
// else there is may have no end (/dev/zero) and is not read. A pipe is waited for: `waits` is
// called first when nothing has come for a second. InvalidArgument names the file.
constexpr std::size_t kFirstLineMax = 4096;  // bytes; a longer one is refused
Result<std::string> read_first_line(const std::filesystem::path& file,
                                    const std::function<void()>& waits);

}  // namespace flotilla::platform
