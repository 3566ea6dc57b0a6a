#include <algorithm>
#include <memory>

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

bool says(const Error& error, const char* words) {
  return error.message.find(words) != std::string::npos;
}

// What would do where the server itself cannot be asked, and its error does not say it.
std::string remedy(const Error& error, const std::string& url) {
  const auto endpoint = http::parse_url(url);
  if (!endpoint) return {};
  const std::string place = fmt::format("{}:{}", endpoint->host, endpoint->port);
  if (endpoint->tls && (says(error, "wrong version number") || says(error, "packet length")))
    return fmt::format("that server speaks no TLS: --server http://{}", place);
  if (endpoint->tls && says(error, "certificate"))
    return "its certificate is for another name, has expired, or is of an authority that this "
           "machine does not know: name the server as the certificate does, renew it, or add the "
           "authority to the system's (update-ca-certificates)";
  if ((error.code == Code::NotFound && !says(error, "no cluster")) ||
      error.code == Code::MethodNotAllowed || error.code == Code::BadGateway)
    return fmt::format("what answers at {} may be no flotilla server: is the port right?", place);
  return {};
}

int examine(const DoctorFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const auto findings =
      wait_for<std::vector<api::Finding>>((*admin)->io(), (*admin)->client().doctor(flags.cluster));
  if (!findings) {
    tell_error(findings.error());
    if (const std::string what = remedy(findings.error(), flags.access.url); !what.empty())
      fmt::print(stderr, "{}\n", what);
    return 1;
  }
  std::vector<std::vector<std::string>> rows{{"CLUSTER", "NODE", "CHECK", "", "FOUND"}};
  for (const api::Finding& finding : *findings)
    rows.push_back({finding.cluster.empty() ? "-" : finding.cluster,
                    finding.node.empty() ? "-" : finding.node, finding.check,
                    api::to_string(finding.level), finding.detail});
  fmt::print("{}", table(rows));
  for (const api::Finding& finding : *findings)
    if (!finding.fix.empty())
      fmt::print("{}{}{}: {}\n", finding.node, finding.node.empty() ? "" : " ", finding.check,
                 printable(finding.fix));
  const auto of_cluster = [](const api::Finding& finding) { return !finding.cluster.empty(); };
  if (flags.cluster.empty() && std::ranges::none_of(*findings, of_cluster))
    fmt::print("no clusters; add one with: flotilla cluster add NAME --node NAME*COUNT\n");
  const bool failed = std::ranges::any_of(*findings, [](const api::Finding& finding) {
    return finding.level == api::Finding::Level::Failure;
  });
  return failed ? 1 : 0;
}

}  // namespace

void add_doctor_command(const App& app, CommandResult& result) {
  auto flags = std::make_shared<DoctorFlags>();
  const auto command = app.add_subcommand(
      "doctor",
      "Looks at the server, at every node (its link, its version, its models, its memory), and at\n"
      "every pool and replica; and says what would do about what is wrong. Exit code 1: something\n"
      "has failed.\n\n"
      "Example:\n  flotilla doctor lab");
  command.add_option("cluster", flags->cluster, "Its id (default: all clusters)");
  add_server_flags(command, flags->access);
  command.callback([flags, &result] { result.exit_code = examine(*flags); });
}

}  // namespace flotilla::cli
