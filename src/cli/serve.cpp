#include <cstdio>
#include <memory>

#include "base/log_line.h"
#include "cli/commands.h"
#include "cli/serve_settings.h"
#include "platform/process.h"

namespace flotilla::cli {
namespace {

int complain(const Error& error) {
  std::fprintf(stderr, "flotilla serve: %s\n", error.message.c_str());
  return 1;
}

int serve(ServeSettings& settings) {
  const auto options = settings.options();
  if (!options) return complain(options.error());
  log::start("serve", log::parse_level(options->log_level));
  log::set_form(log::parse_form(options->log_format));
  if (!options->log_file.empty()) {
    const auto written =
        log::write_to(options->log_file, options->log_file_bytes, options->log_files);
    if (!written) return complain(written.error());
  }
  // Runners of this machine's agent; those of other machines write text.
  platform::set_environment("FLOTILLA_LOG_FORMAT", options->log_format);
  // Every ssh that is started from here on looks there.
  platform::set_environment("FLOTILLA_SSH", options->ssh_program);
  if (!options->ssh_config.empty())
    platform::set_environment("FLOTILLA_SSH_CONFIG", options->ssh_config.string());
  // Where the token lies is no business of runners and engines.
  platform::remove_environment("FLOTILLA_ADMIN_TOKEN_FILE");
  if (const auto file = settings.file(); !file.empty()) log::info("settings of {}", file.string());
  const auto served = gateway::run_gateway(options->gateway);
  return served ? *served : complain(served.error());
}

}  // namespace

void add_serve_command(const App& app, CommandResult& result) {
  const auto command =
      app.add_subcommand("serve", "Serves the declared pools as one OpenAI-compatible endpoint");
  command.footer(
      "Examples:\n"
      "  flotilla serve\n"
      "  flotilla serve --port 9000 --state /srv/flotilla\n"
      "  flotilla serve --config /srv/flotilla.yaml --knob QUEUE_MAX=100\n"
      "  flotilla serve --host 0.0.0.0 --admin-token-file /etc/flotilla/token --allow-anonymous");
  const auto settings = std::make_shared<ServeSettings>();
  settings->add_flags(command);
  command.callback([settings, &result] { result.exit_code = serve(*settings); });
}

}  // namespace flotilla::cli
