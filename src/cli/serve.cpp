#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "cli/commands.h"
#include "gateway/gateway.h"
#include "platform/machine.h"

namespace flotilla::cli {

void add_serve_command(CLI::App& app, CommandResult& result) {
  auto* command =
      app.add_subcommand("serve", "Serves the declared pools as one OpenAI-compatible endpoint");
  command->footer(
      "Examples:\n"
      "  flotilla serve\n"
      "  flotilla serve --port 9000 --state /srv/flotilla\n"
      "  flotilla serve --host 0.0.0.0 --admin-token-file /etc/flotilla/token --allow-anonymous");
  const auto options = std::make_shared<gateway::GatewayOptions>();
  const auto log_level = std::make_shared<std::string>("info");
  options->version = FLOTILLA_VERSION;
  options->state_dir = platform::default_state_dir();
  command->add_option("--host", options->host, "Address to listen on")->capture_default_str();
  command->add_option("--port", options->port, "Port to listen on; 0 takes a free one")
      ->capture_default_str();
  command->add_option("--state", options->state_dir, "Directory of the declared state")
      ->capture_default_str();
  command
      ->add_option("--admin-token-file", options->admin_token_file,
                   "File with the token that /admin asks for")
      ->envname("FLOTILLA_ADMIN_TOKEN_FILE");
  command
      ->add_option("--admin-host", options->admin_hosts,
                   "Name by which others reach /admin and the dashboard; may be given again")
      ->allow_extra_args(false);
  command->add_option("--tls-cert", options->tls_certificate,
                      "PEM file with the server's certificate and its chain; read again when it "
                      "changes");
  command->add_option("--tls-key", options->tls_key, "PEM file with that certificate's key");
  command
      ->add_option("--trusted-proxy", options->trusted_proxies,
                   "Address or range of a proxy whose X-Forwarded-For and -Proto are believed; may "
                   "be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--cors-origin", options->cors_origins,
                   "Site whose pages may use /v1 with a key, as https://app.example; * = all; may "
                   "be repeated")
      ->allow_extra_args(false);
  command->add_flag("--allow-anonymous", options->allow_anonymous,
                    "Serve /v1 to anyone without a key");
  command->add_option("--log-level", *log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  command->callback([options, log_level, &result] {
    log::start("serve", log::parse_level(*log_level));
    const auto served = gateway::run_gateway(*options);
    if (!served) {
      std::fprintf(stderr, "flotilla serve: %s\n", served.error().message.c_str());
      result.exit_code = 1;
      return;
    }
    result.exit_code = *served;
  });
}

}  // namespace flotilla::cli
