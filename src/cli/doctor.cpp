#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/server_access.h"
#include "cli/terminal.h"
#include "client/admin_client.h"

namespace flotilla::cli {
namespace {

struct DoctorFlags {
  ServerAccess access;
  std::string cluster;
};

int examine(const DoctorFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const auto findings =
      wait_for<std::vector<api::Finding>>((*admin)->io(), (*admin)->client().doctor(flags.cluster));
  if (!findings) return tell_error(findings.error());
  if (findings->empty()) {
    fmt::print("no clusters; add one with: flotilla cluster add NAME --node NAME*COUNT\n");
    return 0;
  }
  std::vector<std::vector<std::string>> rows{{"CLUSTER", "NODE", "CHECK", "", "FOUND"}};
  for (const api::Finding& finding : *findings)
    rows.push_back({finding.cluster, finding.node, finding.check, api::to_string(finding.level),
                    finding.detail});
  fmt::print("{}", table(rows));
  for (const api::Finding& finding : *findings)
    if (!finding.fix.empty())
      fmt::print("{} {}: {}\n", finding.node, finding.check, printable(finding.fix));
  const bool failed = std::ranges::any_of(*findings, [](const api::Finding& finding) {
    return finding.level == api::Finding::Level::Failure;
  });
  return failed ? 1 : 0;
}

}  // namespace

void add_doctor_command(CLI::App& app, CommandResult& result) {
  auto flags = std::make_shared<DoctorFlags>();
  auto* command = app.add_subcommand(
      "doctor",
      "Looks at every node: its link, its version, its models; and says what would do about what\n"
      "is wrong. Exit code 1: something has failed.\n\n"
      "Example:\n  flotilla doctor lab");
  command->add_option("cluster", flags->cluster, "Its id (default: all clusters)");
  add_server_flags(*command, flags->access);
  command->callback([flags, &result] { result.exit_code = examine(*flags); });
}

}  // namespace flotilla::cli
