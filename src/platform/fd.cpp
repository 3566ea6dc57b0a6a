#include "platform/fd.h"

#include <unistd.h>

namespace flotilla::platform {

// After EINTR the descriptor is gone on Linux and macOS alike: closing again could close another's.
void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

}  // namespace flotilla::platform
