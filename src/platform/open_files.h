#pragma once

namespace flotilla::platform {

// As many open files as the system lets us have, 65,536 at most: the usual soft limit of 1,024 is
// made for select(). How many those are. Children inherit it.
int raise_open_files_limit();

}  // namespace flotilla::platform
