#pragma once

#include <filesystem>
#include <string>

namespace flotilla::platform {

// The same for all processes on a machine, until it starts anew; tells that two nodes share its
// memory. 32 hex digits derived from the system's id, which is not given away itself. `root`: where
// Linux's files are.
std::string machine_id(const std::filesystem::path& root = "/");
std::string host_name();

// Where state is kept unless a flag says otherwise: $XDG_STATE_HOME/flotilla,
// ~/.local/state/flotilla, macOS ~/Library/Application Support/flotilla.
std::filesystem::path default_state_dir();

}  // namespace flotilla::platform
