#include "platform/limits.h"

#include <cstdlib>
#include <sys/resource.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace flotilla::platform {

std::uint64_t open_files_max() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

void return_large_blocks([[maybe_unused]] int bytes) {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, bytes);
  ::mallopt(M_TRIM_THRESHOLD, 2 * bytes);  // its own rule too, which the line before ends
#endif
}

}  // namespace flotilla::platform
