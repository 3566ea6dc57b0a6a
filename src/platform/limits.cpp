#include "platform/limits.h"

#include <sys/resource.h>

namespace flotilla::platform {

std::uint64_t open_files_max() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

}  // namespace flotilla::platform
