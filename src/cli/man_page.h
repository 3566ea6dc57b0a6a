#pragma once

#include <string>
#include <string_view>

#include "cli/command_tree.h"

namespace flotilla::cli {

// A page of section 1 in man(7)'s macros: a command, and all commands below it. The program's own
// page names its commands and refers to theirs.
std::string man_page(const Command& command, std::string_view version);

// "flotilla-cluster.1"
std::string man_page_name(const Command& command);

}  // namespace flotilla::cli
