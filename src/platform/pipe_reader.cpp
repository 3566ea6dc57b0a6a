#include "platform/pipe_reader.h"

#include <poll.h>

namespace flotilla::platform {

bool is_abandoned(const Fd& fd) {
  // Asked for: a Mac tells nothing of an end that is not.
  pollfd asked{.fd = fd.get(), .events = POLLOUT, .revents = 0};
  return ::poll(&asked, 1, 0) > 0 && (asked.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace flotilla::platform
