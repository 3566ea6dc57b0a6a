#include "platform/amx_tiles.h"

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace flotilla::platform {

bool allow_amx_tiles() {
#if defined(__linux__) && defined(__x86_64__)
  // arch_prctl(2), <asm/prctl.h> of Linux 5.16: a component of the extended state.
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace flotilla::platform
