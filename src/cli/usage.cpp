#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/server_access.h"
#include "client/admin_client.h"

namespace flotilla::cli {
namespace {

struct UsageFlags {
  ServerAccess access;
  std::string by = "key";
  bool csv = false;
};

int show(const UsageFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const api::UsageBy by = *api::parse_usage_by(flags.by);
  if (flags.csv) {
    const auto text = wait_for<std::string>((*admin)->io(), (*admin)->client().usage_csv(by));
    if (!text) return tell_error(text.error());
    fmt::print("{}", *text);
    return 0;
  }
  const auto rows =
      wait_for<std::vector<api::UsageShown>>((*admin)->io(), (*admin)->client().usage(by));
  if (!rows) return tell_error(rows.error());
  std::size_t width = 13;
  for (const api::UsageShown& one : *rows) width = std::max(width, one.title.size());
  fmt::print("{:<{}} {:>10} {:>14} {:>14} {:>16}\n", flags.by, width, "requests", "prompt tokens",
             "of them cached", "generated tokens");
  for (const auto& [title, row] : *rows) {
    fmt::print("{:<{}} {:>10} {:>14} {:>14} {:>16}\n", title, width, row.requests,
               row.prompt_tokens, row.cached_tokens, row.generated_tokens);
  }
  return 0;
}

}  // namespace

void add_usage_command(const App& app, CommandResult& result) {
  auto flags = std::make_shared<UsageFlags>();
  const auto command = app.add_subcommand("usage", "Shows what each API key or day has used");
  command.footer(
      "Examples:\n"
      "  flotilla usage\n"
      "  flotilla usage --by day --csv > usage.csv");
  command.add_option("--by", flags->by, "key or day (UTC)").one_of({"key", "day"}).show_default();
  command.add_flag("--csv", flags->csv, "As comma-separated values");
  add_server_flags(command, flags->access);
  command.callback([flags, &result] { result.exit_code = show(*flags); });
}

}  // namespace flotilla::cli
