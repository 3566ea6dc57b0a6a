#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace flotilla::platform {

// Runs a program that knows nothing of us, in our process group, with an empty stdin and our stdout
// and stderr. It ends when our stdin does, however whoever held that ended: the group gets SIGTERM,
// and when the grace is over SIGKILL, which is our end, too. Until then we outlive a SIGTERM to the
// group. Returns the program's exit code, or dies of the signal that it died of.
int hold_program(const std::vector<std::string>& words, std::chrono::milliseconds grace);

}  // namespace flotilla::platform
