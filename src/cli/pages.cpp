#include "cli/pages.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "cli/command_tree.h"
#include "cli/man_page.h"
#include "cli/shell_completion.h"

namespace flotilla::cli {
namespace {

namespace fs = std::filesystem;

int write_file(const fs::path& file, const std::string& text) {
  std::error_code failed;
  fs::create_directories(file.parent_path(), failed);
  std::ofstream out(file, std::ios::binary);
  out << text;
  if (out.flush()) return 0;
  fmt::print(stderr, "flotilla: {} cannot be written\n", file.string());
  return 1;
}

int print_completion(const Command& program, const std::string& shell) {
  const std::string script = shell == "bash"  ? bash_completion(program)
                             : shell == "zsh" ? zsh_completion(program)
                                              : fish_completion(program);
  fmt::print("{}", script);
  return 0;
}

// What a package has below its share/.
int write_share(const Command& program, const fs::path& share) {
  int failed =
      write_file(share / "bash-completion/completions/flotilla", bash_completion(program)) +
      write_file(share / "zsh/vendor-completions/_flotilla", zsh_completion(program)) +
      write_file(share / "fish/vendor_completions.d/flotilla.fish", fish_completion(program));
  const fs::path man = share / "man/man1";
  failed += write_file(man / man_page_name(program), man_page(program, FLOTILLA_VERSION));
  for (const Command& command : program.commands)
    failed += write_file(man / man_page_name(command), man_page(command, FLOTILLA_VERSION));
  return failed > 0 ? 1 : 0;
}

int print_manual(const Command& program, const std::string& name) {
  if (name.empty()) {
    fmt::print("{}", man_page(program, FLOTILLA_VERSION));
    return 0;
  }
  for (const Command& command : program.commands) {
    if (command.path.back() != name) continue;
    fmt::print("{}", man_page(command, FLOTILLA_VERSION));
    return 0;
  }
  fmt::print(stderr, "flotilla: there is no command \"{}\"; flotilla --help names all\n", name);
  return 2;
}

}  // namespace

void add_page_commands(const App& app, CommandResult& result) {
  const auto shell = std::make_shared<std::string>();
  const auto completion = app.add_subcommand(
      "completion",
      "Prints a script that completes commands and options in a shell.\n\n"
      "Examples:\n"
      "  flotilla completion bash > ~/.local/share/bash-completion/completions/flotilla\n"
      "  flotilla completion zsh > ~/.zfunc/_flotilla\n"
      "  flotilla completion fish > ~/.config/fish/completions/flotilla.fish");
  completion.add_option("shell", *shell, "The shell").required().one_of({"bash", "zsh", "fish"});
  completion.callback([shell, &app, &result] {
    result.exit_code = print_completion(read_command_tree(app), *shell);
  });

  const auto name = std::make_shared<std::string>();
  const auto share = std::make_shared<std::string>();
  const auto manual = app.add_subcommand("manual",
                                         "Prints the manual of a command as a man page.\n\n"
                                         "Examples:\n"
                                         "  flotilla manual serve | man -l -\n"
                                         "  flotilla manual --share /usr/local/share");
  manual.add_option("command", *name, "Its name (default: the program's own page)");
  manual.add_option("--share", *share,
                    "Writes all man pages and completions below this folder instead");
  manual.callback([name, share, &app, &result] {
    const Command program = read_command_tree(app);
    result.exit_code = share->empty() ? print_manual(program, *name) : write_share(program, *share);
  });
}

}  // namespace flotilla::cli
