#include "platform/open_files.h"

#include <algorithm>
#include <sys/resource.h>

namespace flotilla::platform {

int raise_open_files_limit() {
  constexpr rlim_t kMost = 65'536;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlim_t wanted = std::min(limit.rlim_max, kMost);
  if (limit.rlim_cur < wanted) {
    const rlimit more{.rlim_cur = wanted, .rlim_max = limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &more) == 0) limit = more;
  }
  return static_cast<int>(std::min(limit.rlim_cur, kMost));
}

}  // namespace flotilla::platform
