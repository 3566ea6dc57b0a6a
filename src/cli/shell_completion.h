#pragma once

#include <string>

#include "cli/command_tree.h"

// Scripts that complete our commands, their options and the options' choices; where nothing of ours
// fits, file names.
namespace flotilla::cli {

std::string bash_completion(const Command& program);
std::string zsh_completion(const Command& program);
std::string fish_completion(const Command& program);

}  // namespace flotilla::cli
