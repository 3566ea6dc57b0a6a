#pragma once

#include "cli/commands.h"

namespace flotilla::cli {

// completion and manual, of all commands that `app` has by then.
void add_page_commands(const App& app, CommandResult& result);

}  // namespace flotilla::cli
