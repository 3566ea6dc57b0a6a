#include <ctime>
#include <memory>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/server_access.h"
#include "cli/terminal.h"
#include "client/admin_client.h"

namespace flotilla::cli {
namespace {

constexpr double kDaysMax = 36'500;  // a hundred years

struct KeyFlags {
  ServerAccess access;
  api::KeySpec spec;
  double expires_in_days = 0;
  std::string which;
  bool json = false;
};

std::int64_t unix_now_s() { return SystemClock().unix_ms() / 1000; }

std::string bound(std::int64_t value) { return value > 0 ? fmt::format("{}", value) : "-"; }

std::string expiry(std::int64_t expires_unix_s, std::int64_t now_s) {
  if (expires_unix_s == 0) return "never";
  return fmt::format("{}{:%Y-%m-%d %H:%M}Z", expires_unix_s <= now_s ? "expired " : "",
                     fmt::gmtime(static_cast<std::time_t>(expires_unix_s)));
}

std::string text_of(const std::vector<api::KeyShown>& keys) {
  if (keys.empty()) return "no API keys: this machine alone is served, without one\n";
  const std::int64_t now_s = unix_now_s();
  std::vector<std::vector<std::string>> rows = {{"id", "name", "weight", "req/min", "tokens/min",
                                                 "at once", "in flight", "cache group", "expires",
                                                 "models"}};
  for (const api::KeyShown& key : keys) {
    const api::KeySpec& spec = key.spec;
    rows.push_back(
        {key.id, spec.name, fmt::format("{:g}", spec.weight), bound(spec.requests_per_min),
         bound(spec.tokens_per_min), bound(spec.max_in_flight), fmt::format("{}", key.in_flight),
         spec.cache_group.empty() ? "-" : spec.cache_group, expiry(spec.expires_unix_s, now_s),
         spec.models.empty() ? "all" : fmt::format("{}", fmt::join(spec.models, ", "))});
  }
  return table(rows);
}

int list(const KeyFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const auto keys = wait_for<std::vector<api::KeyShown>>((*admin)->io(), (*admin)->client().keys());
  if (!keys) return tell_error(keys.error());
  fmt::print("{}", flags.json ? api::keys_json(*keys) + "\n" : text_of(*keys));
  return 0;
}

int add(KeyFlags flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  if (flags.expires_in_days > 0) {
    flags.spec.expires_unix_s =
        unix_now_s() + static_cast<std::int64_t>(flags.expires_in_days * 86'400);
  }
  const auto made =
      wait_for<api::NewKey>((*admin)->io(), (*admin)->client().add_key(std::move(flags.spec)));
  if (!made) return tell_error(made.error());
  // Alone on stdout, for scripts.
  fmt::print("{}\n", made->secret);
  fmt::print(stderr, "{} \"{}\"; it is shown this once\n", made->key.id, made->key.spec.name);
  return 0;
}

// By id or by name.
int remove(const KeyFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const auto keys = wait_for<std::vector<api::KeyShown>>((*admin)->io(), (*admin)->client().keys());
  if (!keys) return tell_error(keys.error());
  std::string id = flags.which;
  for (const api::KeyShown& key : *keys) {
    if (key.spec.name == flags.which) id = key.id;
  }
  const auto removed = wait_for<void>((*admin)->io(), (*admin)->client().remove_key(id));
  if (!removed) return tell_error(removed.error());
  fmt::print("{} is taken back\n", id);
  return 0;
}

}  // namespace

void add_keys_command(const App& app, CommandResult& result) {
  auto flags = std::make_shared<KeyFlags>();
  const auto command = app.add_subcommand("keys", "Makes, lists and takes back API keys");
  command.require_subcommand();
  command.footer(
      "Examples:\n"
      "  flotilla keys add ci --models smollm2-135m-instruct --tokens-per-min 100000\n"
      "  flotilla keys list\n"
      "  flotilla keys remove ci\n"
      "While there is no key, /v1 serves this machine alone, without one.");
  const auto make = command.add_subcommand("add", "Makes a key and prints its secret, this once");
  make.add_option("name", flags->spec.name, "What it is for").required();
  make.add_option("--models", flags->spec.models, "Aliases that it may ask for (default: all)")
      .separated_by(',');
  make.add_option("--weight", flags->spec.weight, "Its share where keys wait for each other")
      .between(0.01, 100.0)
      .show_default();
  make.add_option("--requests-per-min", flags->spec.requests_per_min, "0 = no bound")
      .not_negative();
  make.add_option("--tokens-per-min", flags->spec.tokens_per_min, "Prompt and answer; 0 = no bound")
      .not_negative();
  make.add_option("--max-in-flight", flags->spec.max_in_flight,
                  "Answers at once (a request with n = 4 has four); 0 = no bound")
      .not_negative();
  make.add_option("--cache-group", flags->spec.cache_group,
                  "Keys of one group share what is cached of prompts (default: with nobody)");
  make.add_option("--expires-in-days", flags->expires_in_days, "0 = never").between(0.0, kDaysMax);
  add_server_flags(make, flags->access);
  make.callback([flags, &result] { result.exit_code = add(*flags); });
  const auto show = command.add_subcommand("list", "Shows all keys, without their secrets");
  show.add_flag("--json", flags->json, "One line of JSON");
  add_server_flags(show, flags->access);
  show.callback([flags, &result] { result.exit_code = list(*flags); });
  const auto drop =
      command.add_subcommand("remove", "Takes a key back; it opens nothing from now on");
  drop.add_option("key", flags->which, "Its id or name").required();
  add_server_flags(drop, flags->access);
  drop.callback([flags, &result] { result.exit_code = remove(*flags); });
}

}  // namespace flotilla::cli
