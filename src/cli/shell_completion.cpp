#include "cli/shell_completion.h"

#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace flotilla::cli {
namespace {

// "/cluster/add"; the program's own is empty.
std::string place_of(const Command& command) {
  std::string out;
  for (const std::string& word : command.path) out += "/" + word;
  return out;
}

void for_each_command(const Command& command, const std::function<void(const Command&)>& visit) {
  visit(command);
  for (const Command& below : command.commands) for_each_command(below, visit);
}

// In single quotes for each of the three shells, as one line.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "’";  // within quotes no two of the shells write it alike
    } else {
      out += c == '\n' || c == '\\' ? ' ' : c;
    }
  }
  return out + "'";
}

std::vector<std::string> all_places(const Command& program) {
  std::vector<std::string> places;
  for_each_command(program, [&](const Command& command) {
    if (!command.path.empty()) places.push_back(place_of(command));
  });
  return places;
}

// `case PLACE:NAME in` of what may follow an option that takes a value.
std::string choice_cases(const Command& program, const std::string& act) {
  std::string out;
  for_each_command(program, [&](const Command& command) {
    for (const CommandOption& option : command.options) {
      if (option.value.empty() || option.names.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names)
        patterns.push_back("'" + place_of(command) + ":" + name + "'");
      out += fmt::format("    {}) ", fmt::join(patterns, " | "));
      out += option.choices.empty()
                 ? std::string("_flotilla_files; return ;;\n")
                 : fmt::format("{} {}; return ;;\n", act, fmt::join(option.choices, " "));
    }
  });
  return out;
}

std::vector<std::string> words_at(const Command& command) {
  std::vector<std::string> words;
  for (const Command& below : command.commands) words.push_back(below.path.back());
  for (const CommandOption& option : command.options) {
    words.insert(words.end(), option.names.begin(), option.names.end());
    if (option.names.empty())
      words.insert(words.end(), option.choices.begin(), option.choices.end());
  }
  return words;
}

}  // namespace

std::string bash_completion(const Command& program) {
  std::string out =
      "# bash completion for flotilla\n"
      "_flotilla_files() { COMPREPLY=(); }\n"
      "_flotilla_words() { COMPREPLY=($(compgen -W \"$*\" -- \"${COMP_WORDS[COMP_CWORD]}\")); }\n"
      "_flotilla() {\n"
      "  local at= word i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    word=${COMP_WORDS[i]}\n";
  out += fmt::format("    case $at/$word in {}) at+=/$word ;; esac\n  done\n",
                     fmt::join(all_places(program), " | "));
  out += "  case \"$at:${COMP_WORDS[COMP_CWORD - 1]}\" in\n" +
         choice_cases(program, "_flotilla_words") + "  esac\n  case $at in\n";
  for_each_command(program, [&](const Command& command) {
    out += fmt::format("    '{}') _flotilla_words {} ;;\n", place_of(command),
                       fmt::join(words_at(command), " "));
  });
  return out + "  esac\n}\ncomplete -o default -F _flotilla flotilla\n";
}

std::string zsh_completion(const Command& program) {
  std::string out =
      "#compdef flotilla\n"
      "_flotilla_files() { _files }\n"
      "_flotilla() {\n"
      "  local at= word\n"
      "  local -a commands options\n"
      "  integer i\n"
      "  for ((i = 2; i < CURRENT; i++)); do\n"
      "    word=$words[i]\n";
  out += fmt::format("    case $at/$word in ({}) at+=/$word ;; esac\n  done\n",
                     fmt::join(all_places(program), " | "));
  out += "  case \"$at:$words[CURRENT-1]\" in\n" + choice_cases(program, "compadd --") +
         "  esac\n  case $at in\n";
  for_each_command(program, [&](const Command& command) {
    out += fmt::format("    '{}')\n      commands=(", place_of(command));
    for (const Command& below : command.commands)
      out += "\n        " + quoted(below.path.back() + ":" + below.summary());
    out += ")\n      options=(";
    for (const CommandOption& option : command.options) {
      for (const std::string& name : option.names)
        out += "\n        " + quoted(name + ":" + option.about);
    }
    out += ")\n      ;;\n";
  });
  return out +
         "  esac\n"
         "  (($#commands)) && _describe command commands\n"
         "  _describe -o option options\n"
         "  (($#commands)) || _files\n"
         "}\n"
         "if [[ $funcstack[1] == _flotilla ]]; then _flotilla \"$@\"; else compdef _flotilla "
         "flotilla; fi\n";
}

std::string fish_completion(const Command& program) {
  std::string out =
      "# fish completion for flotilla\n"
      "function __flotilla_at\n"
      "  set -l at ''\n"
      "  for word in (commandline -opc)[2..-1]\n";
  out += fmt::format("    if contains -- $at/$word {}\n      set at $at/$word\n    end\n  end\n",
                     fmt::join(all_places(program), " "));
  out += "  test \"$at\" = \"$argv[1]\"\nend\n";
  for_each_command(program, [&](const Command& command) {
    const std::string when =
        fmt::format("complete -c flotilla -n '__flotilla_at \"{}\"'", place_of(command));
    for (const Command& below : command.commands)
      out += fmt::format("{} -f -a {} -d {}\n", when, below.path.back(), quoted(below.summary()));
    for (const CommandOption& option : command.options) {
      std::string names;
      for (const std::string& name : option.names)
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (names.empty() && option.choices.empty()) continue;
      out += when + names;
      if (!option.names.empty() && !option.value.empty()) out += " -r";
      if (!option.choices.empty())
        out += fmt::format(" -f -a '{}'", fmt::join(option.choices, " "));
      out += " -d " + quoted(option.about) + "\n";
    }
  });
  return out;
}

}  // namespace flotilla::cli
