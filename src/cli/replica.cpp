#include <memory>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/server_access.h"
#include "client/admin_client.h"

namespace flotilla::cli {
namespace {

struct ReplicaFlags {
  ServerAccess access;
  std::string cluster;
  std::string alias;
  std::string node;
};

int order(const ReplicaFlags& flags, api::ReplicaAction action) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const auto replica = wait_for<api::ReplicaStatus>(
      (*admin)->io(),
      (*admin)->client().order_replica(flags.cluster, flags.alias, flags.node, action));
  if (!replica) return tell_error(replica.error());
  fmt::print("{} on {}: {}{}\n", flags.alias, flags.node, replica->state,
             replica->live || replica->last_error.empty() ? "" : ", " + replica->last_error);
  return action == api::ReplicaAction::Restart && !replica->live ? 1 : 0;
}

}  // namespace

void add_replica_command(const App& app, CommandResult& result) {
  auto flags = std::make_shared<ReplicaFlags>();
  const auto command = app.add_subcommand("replica", "Restarts, drains or resumes one replica");
  command.require_subcommand();
  const auto add = [&](api::ReplicaAction action, const char* what) {
    const auto one = command.add_subcommand(api::to_string(action), what);
    one.add_option("cluster", flags->cluster, "The cluster's id").required();
    one.add_option("alias", flags->alias, "The pool").required();
    one.add_option("node", flags->node, "The node whose replica it is").required();
    add_server_flags(one, flags->access);
    one.callback([flags, action, &result] { result.exit_code = order(*flags, action); });
  };
  add(api::ReplicaAction::Restart,
      "Lets its requests finish, starts it anew and waits until it is ready.\n\n"
      "Example:\n  flotilla replica restart local smollm2-135m-instruct local-1");
  add(api::ReplicaAction::Drain,
      "Gives it nothing new; it stays loaded until it is resumed.\n\n"
      "Example:\n  flotilla replica drain local smollm2-135m-instruct local-1");
  add(api::ReplicaAction::Resume,
      "Gives it requests again.\n\n"
      "Example:\n  flotilla replica resume local smollm2-135m-instruct local-1");
}

}  // namespace flotilla::cli
