#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"

// What our commands are and take, read from their definitions: the one source of --help,
// man pages and shell completions.
namespace flotilla::cli {

struct CommandOption {
  std::vector<std::string> names;  // "--port", "-h"; empty: an argument by its place
  std::string place;               // that argument's name
  std::string value;               // "TEXT"; empty: a switch
  std::vector<std::string> choices;
  std::string about;
  std::string standard;     // its default; empty: none
  std::string environment;  // a variable's name; empty: none
  bool required = false;
};

struct Command {
  std::vector<std::string> path;  // {"cluster", "add"}; empty: the program
  std::string about;
  std::string footer;
  std::vector<CommandOption> options;
  std::vector<Command> commands;

  std::string name() const;     // "flotilla cluster add"
  std::string summary() const;  // the first sentence of `about`, without its full stop
};

// Commands and options without a group are ours alone and left out.
Command read_command_tree(const App& program);

}  // namespace flotilla::cli
