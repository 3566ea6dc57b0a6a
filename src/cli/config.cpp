#include <map>
#include <memory>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/serve_settings.h"
#include "cli/server_access.h"
#include "cli/terminal.h"

// flotilla.yaml: is it right, what does it come to, what may stand in it.
namespace flotilla::cli {
namespace {

int check(const ServeSettings& settings, const std::string& named) {
  const std::filesystem::path file = named.empty() ? settings.file() : std::filesystem::path(named);
  if (file.empty()) {
    fmt::print(
        "no file is read: there is no $FLOTILLA_CONFIG and no /etc/flotilla/flotilla.yaml\n");
    return 0;
  }
  const auto text = config::read_file(file);
  if (!text) return tell_error(text.error());
  const auto values = config::read_settings(settings.table(), *text, file);
  if (!values) {
    fmt::print(stderr, "{}\n", values.error().message);  // begins with the file, for editors
    return 1;
  }
  fmt::print("{}: {} settings, all good\n", file.string(), values->size());
  return 0;
}

// The knobs of a running server, by name: it knows what an operator stored.
Result<std::map<std::string, api::SettingShown>> knobs_of(const std::string& url,
                                                          const std::string& token_file) {
  auto admin = open_admin({.url = url, .token_file = token_file});
  if (!admin) return fail(admin.error());
  auto shown =
      wait_for<std::vector<api::SettingShown>>((*admin)->io(), (*admin)->client().settings());
  if (!shown) return fail(shown.error());
  std::map<std::string, api::SettingShown> out;
  for (api::SettingShown& one : *shown) out.emplace(one.name, std::move(one));
  return out;
}

int show(ServeSettings& settings, const std::string& server) {
  auto resolved = settings.resolve();
  if (!resolved) return tell_error(resolved.error());
  std::map<std::string, api::SettingShown> knobs;
  if (!server.empty()) {
    std::string token_file;
    for (const config::Resolved& one : *resolved)
      if (one.setting->key == "admin_token_file") token_file = config::shown(one.value);
    auto there = knobs_of(server, token_file);
    if (!there) return tell_error(there.error());
    knobs = std::move(*there);
  }
  std::vector<std::vector<std::string>> rows{{"SETTING", "VALUE", "SOURCE", "WHERE"}};
  for (config::Resolved& one : *resolved) {
    const auto knob = knobs.find(one.setting->key);
    if (knob != knobs.end() && !one.setting->section.empty() &&
        (knob->second.source != one.source || config::Value(knob->second.value) != one.value)) {
      one = {.setting = one.setting,
             .value = knob->second.value,
             .source = knob->second.source,
             .where = server};
    }
    const std::string value = config::shown(one.value);
    rows.push_back({one.setting->name(), value.empty() ? "-" : value, one.source, one.where});
  }
  const auto file = settings.file();
  fmt::print("file: {}\n\n{}", file.empty() ? "none" : file.string(), table(rows));
  if (server.empty())
    fmt::print("\nA knob that an operator stored goes before the file: --server URL shows it.\n");
  return 0;
}

}  // namespace

void add_config_command(const App& app, CommandResult& result) {
  const auto command = app.add_subcommand("config", "Checks, shows and describes flotilla.yaml");
  command.require_subcommand();
  command.footer(
      "Examples:\n"
      "  flotilla config check ./flotilla.yaml\n"
      "  flotilla config show --config ./flotilla.yaml\n"
      "  flotilla config schema > flotilla.schema.json");
  const auto settings = std::make_shared<ServeSettings>();
  const auto text = std::make_shared<std::string>();

  const auto checked =
      command.add_subcommand("check", "Says what is wrong in a file, line by line");
  checked.add_option("file", *text, "The file (default: the one that `flotilla serve` reads)");
  checked.callback([settings, text, &result] { result.exit_code = check(*settings, *text); });

  const auto shown = command.add_subcommand(
      "show", "Prints each setting's value and where it comes from; takes the flags of serve");
  settings->add_flags(shown);
  shown.add_option("--server", *text, "A running server, whose stored knobs count too");
  shown.callback([settings, text, &result] { result.exit_code = show(*settings, *text); });

  const auto schema = command.add_subcommand("schema", "Prints the file's JSON schema");
  schema.callback([settings] { fmt::print("{}", config::json_schema(settings->table())); });
}

}  // namespace flotilla::cli
