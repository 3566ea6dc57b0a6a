#include <memory>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/server_access.h"
#include "cli/terminal.h"
#include "client/admin_client.h"

namespace flotilla::cli {
namespace {

struct ReloadFlags {
  ServerAccess access;
  std::string cluster;
  api::ReloadSpec spec;
  std::string model;
  bool batch = false;
  bool no_batch = false;
};

int reload(const ReloadFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  api::ReloadSpec spec = flags.spec;
  if (!flags.model.empty()) spec.model = flags.model;
  if (flags.batch || flags.no_batch) spec.batch = flags.batch;
  const auto answer =
      wait_for<api::LoadAnswer>((*admin)->io(), (*admin)->client().reload(flags.cluster, spec));
  if (!answer) return tell_error(answer.error());
  fmt::print("{}: generation {}, {} of {} replicas ready after {}\n", answer->pool.alias,
             answer->pool.generation, answer->pool.replicas_live(), answer->pool.replicas.size(),
             duration_text(answer->load_s));
  return 0;
}

}  // namespace

void add_reload_command(const App& app, CommandResult& result) {
  auto flags = std::make_shared<ReloadFlags>();
  const auto command = app.add_subcommand(
      "reload",
      "Brings a pool up anew, with another model if one is given, without a failed request:\n"
      "new replicas take over as they become ready, answers under way finish in the old ones.\n\n"
      "Examples:\n"
      "  flotilla reload local small --model /models/better.gguf\n"
      "  flotilla reload local small --batch");
  command.add_option("cluster", flags->cluster, "The cluster's id").required();
  command.add_option("alias", flags->spec.alias, "The pool (default: the cluster's only one)");
  command.add_option("--model", flags->model, "Another .gguf");
  const auto batch = command.add_flag("--batch", flags->batch, "From now on with batching");
  command.add_flag("--no-batch", flags->no_batch, "From now on one request at a time")
      .excludes(batch);
  command.add_flag("--force", flags->spec.force, "Even if the memory seems too small");
  add_server_flags(command, flags->access);
  command.callback([flags, &result] { result.exit_code = reload(*flags); });
}

}  // namespace flotilla::cli
