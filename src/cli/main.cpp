#include <cstdio>
#include <cstdlib>

#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/pages.h"
#include "platform/process.h"

int main(int argc, char** argv) {
  using namespace flotilla::cli;
  if (std::getenv("FLOTILLA_CORE_DUMPS") == nullptr) flotilla::platform::leave_no_core_dumps();
  constexpr const char* kVersion = "flotilla " FLOTILLA_VERSION;
  Program app{
      "Flotilla serves one language model to many users from a few machines.\n\n"
      "Examples:\n"
      "  flotilla serve\n"
      "  flotilla cluster add local --node local*2\n"
      "  flotilla load local /models/SmolLM2-135M-Instruct.Q4_1.gguf --batch\n"
      "  flotilla status --watch\n",
      kVersion};
  app.require_subcommand();
  CommandResult result;
  add_serve_command(app, result);
  add_config_command(app, result);
  add_runner_command(app, result);
  add_agent_command(app, result);
  add_cluster_command(app, result);
  add_doctor_command(app, result);
  add_model_command(app, result);
  add_node_command(app, result);
  add_load_commands(app, result);
  add_reload_command(app, result);
  add_replica_command(app, result);
  add_apply_commands(app, result);
  add_keys_command(app, result);
  add_usage_command(app, result);
  add_request_command(app, result);
  add_status_command(app, result);
  add_preflight_command(app, result);
  add_bench_command(app, result);
  add_conform_command(app, result);
  add_page_commands(app, result);
  const auto version =
      app.add_subcommand("version", "Prints the version.\n\nExample:\n  flotilla version");
  version.callback([] { std::puts(kVersion); });
  if (const auto ended = app.parse(argc, argv)) return *ended;
  return result.exit_code;
}
