#pragma once

#include "platform/fd.h"

namespace flotilla::platform {

// Nobody reads any more what is written to this pipe or socket. Of a file: never.
bool is_abandoned(const Fd& fd);

}  // namespace flotilla::platform
