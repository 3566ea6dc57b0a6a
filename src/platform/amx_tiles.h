#pragma once

namespace flotilla::platform {

// Asks the system for the 8 KiB of AMX tile registers, for all threads of this process; without it
// they may not be used. False where the system or the processor has none.
bool allow_amx_tiles();

}  // namespace flotilla::platform
