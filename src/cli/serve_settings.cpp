#include "cli/serve_settings.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest.h"
#include "config/engines.h"
#include "gateway/knobs.h"
#include "platform/machine.h"
#include "platform/own_file.h"

namespace flotilla::cli {
namespace {

using config::into;

constexpr const char* kSystemFile = "/etc/flotilla/flotilla.yaml";
constexpr const char* kKnobs = "knobs";

// One setting is one entry here, and the member that it is for.
std::vector<config::Setting> table_of(ServeOptions& options) {
  gateway::GatewayOptions& gateway = options.gateway;
  return {
      {.key = "host",
       .flag = "--host",
       .about = "Address to listen on",
       .target = into(gateway.host)},
      {.key = "port",
       .flag = "--port",
       .about = "Port to listen on; 0 takes a free one",
       .target = into(gateway.port),
       .max = 65535},
      {.key = "state",
       .flag = "--state",
       .about = "Directory of the declared state",
       .target = into(gateway.state_dir),
       .varies = true},
      {.key = "admin_token_file",
       .flag = "--admin-token-file",
       .environment = "FLOTILLA_ADMIN_TOKEN_FILE",
       .about = "File with the token that /admin asks for",
       .target = into(gateway.admin_token_file)},
      {.key = "admin_hosts",
       .flag = "--admin-host",
       .about = "Name by which others reach /admin and the dashboard; may be repeated",
       .target = into(gateway.admin_hosts)},
      {.key = "tls_certificate",
       .flag = "--tls-cert",
       .about = "PEM file with the server's certificate and its chain; read again when it changes",
       .target = into(gateway.tls_certificate)},
      {.key = "tls_key",
       .flag = "--tls-key",
       .about = "PEM file with that certificate's key",
       .target = into(gateway.tls_key)},
      {.key = "trusted_proxies",
       .flag = "--trusted-proxy",
       .about = "Address or range of a proxy whose X-Forwarded-For and -Proto are believed; may be "
                "repeated",
       .target = into(gateway.trusted_proxies)},
      {.key = "cors_origins",
       .flag = "--cors-origin",
       .about = "Site whose pages may use /v1 with a key, as https://app.example; * = all; may be "
                "repeated",
       .target = into(gateway.cors_origins)},
      {.key = "allow_anonymous",
       .flag = "--allow-anonymous",
       .about = "Serve /v1 to anyone without a key",
       .target = into(gateway.allow_anonymous)},
      {.key = "ssh_program",
       .flag = "--ssh-program",
       .environment = "FLOTILLA_SSH",
       .about = "OpenSSH's client, which reaches nodes on other machines",
       .target = into(options.ssh_program)},
      {.key = "ssh_config",
       .flag = "--ssh-config",
       .environment = "FLOTILLA_SSH_CONFIG",
       .about = "Configuration that ssh reads instead of the user's",
       .target = into(options.ssh_config)},
      {.key = "log_level",
       .flag = "--log-level",
       .about = "How much is told on stderr",
       .target = into(options.log_level),
       .choices = {"debug", "info", "warning", "error"}},
      {.key = "log_format",
       .flag = "--log-format",
       .environment = "FLOTILLA_LOG_FORMAT",
       .about = "A line of text, or one JSON object a line",
       .target = into(options.log_format),
       .choices = {"text", "json"}},
      {.key = "log_file",
       .flag = "--log-file",
       .about = "File for the log instead of stderr",
       .target = into(options.log_file)},
      {.key = "log_file_bytes",
       .flag = "--log-file-bytes",
       .about = "Size at which that file is moved to NAME.1.EXTENSION",
       .target = into(options.log_file_bytes),
       .min = 4096,
       .max = 1e12},
      {.key = "log_files",
       .flag = "--log-files",
       .about = "How many that were moved away are kept",
       .target = into(options.log_files),
       .min = 1,
       .max = 1000},
      {.key = "engines",
       .about = "Engines that are not ours, which agents start as replicas: by name, a command and "
                "how it is spoken to",
       .target = into(options.engines),
       .check = [](const config::Node& node) -> Result<void> {
         if (auto read = config::read_engines(node); !read) return fail(read.error());
         return {};
       },
       .schema = config::engines_schema()},
  };
}

// Knobs go to the gateway layer by layer: it puts what operators stored between them.
config::Setting knob(const api::SettingShown& shown) {
  return {.key = shown.name,
          .environment = shown.name,
          .about = shown.about,
          .target = {.standard = shown.standard, .assign = [](const config::Value&) {}},
          .min = shown.min,
          .max = shown.max,
          .whole = false,
          .section = kKnobs};
}

std::string complaint(const config::Setting& setting, std::string_view text) {
  const auto value = config::read_value(setting, text);
  return value ? std::string() : "is " + value.error().message;
}

// "NAME=VALUE" -> "knobs.NAME" and VALUE.
std::pair<std::string, std::string> split_knob(std::string_view text) {
  const auto equals = text.find('=');
  return {fmt::format("{}.{}", kKnobs, text.substr(0, equals)),
          std::string(equals == std::string_view::npos ? "" : text.substr(equals + 1))};
}

std::string knob_complaint(const std::vector<config::Setting>& table, const std::string& text) {
  const auto [name, value] = split_knob(text);
  const auto found = std::ranges::find(table, name, &config::Setting::name);
  if (found != table.end()) {
    const std::string wrong = complaint(*found, value);
    return wrong.empty() ? wrong : fmt::format("{} {}", found->key, wrong);
  }
  std::vector<std::string_view> known;
  for (const config::Setting& setting : table)
    if (setting.section == kKnobs) known.push_back(setting.key);
  const std::string_view key = std::string_view(text).substr(0, text.find('='));
  return fmt::format("is {}; it takes NAME=NUMBER, and there is no knob {};{} there are {}", text,
                     key, did_you_mean(key, known), fmt::join(known, ", "));
}

const char* environment(const char* name) { return std::getenv(name); }

// Whoever writes one of these says who administers and which programs are started.
Result<void> check_is_ours(std::string_view what, const std::filesystem::path& file) {
  if (file.empty()) return {};
  const auto ours = platform::check_others_cannot_write(file);
  if (ours || ours.error().code != Code::InvalidArgument)
    return {};  // what is missing is told elsewhere
  return fail(Code::InvalidArgument,
              fmt::format("{} {} is not safe: {}", what, file.string(), ours.error().message));
}

}  // namespace

ServeSettings::ServeSettings() {
  options_.gateway.version = FLOTILLA_VERSION;
  options_.gateway.state_dir = platform::default_state_dir();
  table_ = table_of(options_);
  for (const api::SettingShown& shown : gateway::Settings::table()) table_.push_back(knob(shown));
}

void ServeSettings::add_flags(const App& command) {
  command.add_option("--config", config_,
                     fmt::format("File with settings (default: $FLOTILLA_CONFIG, else {} if it is "
                                 "there); `flotilla config` tells about it",
                                 kSystemFile));
  for (const config::Setting& setting : table_) {
    if (setting.flag.empty()) continue;
    const std::string name = setting.name();
    const bool is_switch = std::holds_alternative<bool>(setting.target.standard);
    const Option option = is_switch ? command.add_flag(setting.flag, switches_[name], setting.about)
                                    : command.add_option(setting.flag, texts_[name], setting.about);
    if (!is_switch) {
      const bool is_list =
          std::holds_alternative<std::vector<std::string>>(setting.target.standard);
      if (!is_list) option.values(1, 1);
      option.one_value_each();
      option.check([&setting](const std::string& text) { return complaint(setting, text); });
      option.type_name(setting.choices.empty()
                           ? std::string("TEXT")
                           : fmt::format("{{{}}}", fmt::join(setting.choices, ",")));
      if (const std::string standard = config::shown(setting.target.standard); !standard.empty())
        option.show_default(standard);
    }
    if (!setting.environment.empty())
      option.describe(fmt::format("{} ({})", setting.about, setting.environment));
    flags_.emplace(name, option);
  }
  command
      .add_option("--knob", knobs_,
                  "NAME=NUMBER: a knob (also an environment variable of that name, knobs: in the "
                  "file, and /admin/settings); any number of times")
      .one_value_each()
      .type_name("NAME=NUMBER")
      .check([this](const std::string& text) { return knob_complaint(table_, text); });
}

std::filesystem::path ServeSettings::file() const {
  if (!config_.empty()) return config_;
  if (const char* named = environment("FLOTILLA_CONFIG"); named != nullptr && *named != '\0')
    return named;
  std::error_code ignored;
  return std::filesystem::exists(kSystemFile, ignored) ? kSystemFile : "";
}

Result<void> ServeSettings::read_layers() {
  layers_ = {.environment = environment};
  for (const auto& [name, option] : flags_)
    if (option.given()) layers_.flags[name] = fmt::format("{}", fmt::join(option.texts(), ","));
  for (const std::string& text : knobs_)
    layers_.flags.insert_or_assign(split_knob(text).first, split_knob(text).second);
  const std::filesystem::path path = file();
  if (path.empty()) return {};
  const auto text = config::read_file(path);
  if (!text) return fail(text.error());
  auto values = config::read_settings(table_, *text, path);
  if (!values) return fail(values.error());
  layers_.file = std::move(*values);
  return {};
}

Result<std::vector<config::Resolved>> ServeSettings::resolve() {
  if (auto read = read_layers(); !read) return fail(read.error());
  return config::resolve(table_, layers_);
}

Result<ServeOptions> ServeSettings::options() {
  const auto resolved = resolve();
  if (!resolved) return fail(resolved.error());
  for (const config::Resolved& one : *resolved) {
    one.setting->target.assign(one.value);
    if (one.setting->section != kKnobs) continue;
    const std::string name = one.setting->name();
    if (const auto file = layers_.file.find(name); file != layers_.file.end())
      options_.gateway.knob_file[one.setting->key] = std::get<double>(file->second.value);
    if (one.source == "flag")
      options_.gateway.knob_flags[one.setting->key] = std::get<double>(one.value);
  }
  if (auto ours = check_is_ours("the settings file", file()); !ours) return fail(ours.error());
  if (auto ours = check_is_ours("ssh_config", options_.ssh_config); !ours)
    return fail(ours.error());
  auto engines = config::read_engines(options_.engines);
  if (!engines) return fail(engines.error());
  options_.gateway.engines = std::move(*engines);
  return options_;
}

}  // namespace flotilla::cli
