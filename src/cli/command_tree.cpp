#include "cli/command_tree.h"

#include <utility>

#include <CLI/CLI.hpp>

namespace flotilla::cli {
namespace {

// "TEXT:{debug,info}" -> "TEXT" and its choices.
void read_type(std::string type, CommandOption& option) {
  const auto open = type.find('{');
  const auto close = type.find('}');
  if (open != std::string::npos && close != std::string::npos && close > open) {
    std::string word;
    for (const char c : type.substr(open + 1, close - open)) {
      if (c == ',' || c == '}') {
        option.choices.push_back(std::exchange(word, {}));
      } else {
        word += c;
      }
    }
    type.resize(open);
  }
  const auto colon = type.find(':');
  option.value = colon == std::string::npos ? type : type.substr(0, colon);
  if (option.value.empty()) option.value = "TEXT";
}

CommandOption read_option(const CLI::Option& from) {
  CommandOption option;
  for (const std::string& name : from.get_lnames()) option.names.push_back("--" + name);
  for (const std::string& name : from.get_snames()) option.names.push_back("-" + name);
  if (option.names.empty()) option.place = from.get_name(true);
  if (from.get_items_expected_max() > 0) read_type(from.get_type_name(), option);
  option.about = from.get_description();
  // A path is this machine's.
  if (!from.get_default_str().starts_with('/')) option.standard = from.get_default_str();
  option.environment = from.get_envname();
  option.required = from.get_required();
  return option;
}

Command read_command(const CLI::App& from, std::vector<std::string> path) {
  Command command;
  command.path = std::move(path);
  command.about = from.get_description();
  command.footer = from.get_footer();
  for (const CLI::Option* option : from.get_options()) {
    if (!option->get_group().empty()) command.options.push_back(read_option(*option));
  }
  const auto all = [](const CLI::App*) { return true; };
  for (const CLI::App* below : from.get_subcommands(all)) {
    if (below->get_group().empty()) continue;
    std::vector<std::string> its_path = command.path;
    its_path.push_back(below->get_name());
    command.commands.push_back(read_command(*below, std::move(its_path)));
  }
  return command;
}

}  // namespace

std::string Command::name() const {
  std::string out = "flotilla";
  for (const std::string& word : path) out += " " + word;
  return out;
}

std::string Command::summary() const {
  std::string out;
  for (std::size_t i = 0; i < about.size(); ++i) {
    const char next = i + 1 < about.size() ? about[i + 1] : '\n';
    if ((about[i] == '.' || about[i] == ';' || about[i] == ':') && (next == ' ' || next == '\n'))
      break;
    if (about[i] == '\n' && next == '\n') break;
    out += about[i] == '\n' ? ' ' : about[i];
  }
  return out;
}

Command read_command_tree(const App& program) { return read_command(program.tree(), {}); }

}  // namespace flotilla::cli
