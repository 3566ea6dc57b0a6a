#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands.h"
#include "cli/server_access.h"
#include "cli/terminal.h"
#include "client/admin_client.h"

namespace flotilla::cli {
namespace {

struct ModelFlags {
  ServerAccess access;
  std::string cluster;
};

std::string note(const api::FoundModel& model) {
  std::string out;
  const auto add = [&](const char* what, const std::vector<std::string>& nodes) {
    if (nodes.empty()) return;
    out += fmt::format("{}{} {}", out.empty() ? "" : "; ", what, fmt::join(nodes, ", "));
  };
  add("missing on", model.missing);
  add("another file on", model.differing);
  if (!model.file.error.empty()) out += (out.empty() ? "" : "; ") + model.file.error;
  return out;
}

int list(const ModelFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const auto rows =
      wait_for<std::vector<api::ModelRow>>((*admin)->io(), (*admin)->client().models());
  if (!rows) return tell_error(rows.error());
  std::vector<std::vector<std::string>> lines{
      {"CLUSTER", "MODEL", "SIZE", "QUANTISATION", "NODES", ""}};
  for (const api::ModelRow& row : *rows) {
    if (!flags.cluster.empty() && row.cluster != flags.cluster) continue;
    lines.push_back({row.cluster, row.model.file.path, bytes_text(row.model.file.bytes),
                     row.model.file.quantization, fmt::format("{}", row.model.nodes.size()),
                     note(row.model)});
  }
  if (lines.size() == 1) {
    fmt::print("no models: a cluster's models_dir names the folder where its nodes have them\n");
    return 0;
  }
  fmt::print("{}", table(lines));
  return 0;
}

}  // namespace

void add_model_command(CLI::App& app, CommandResult& result) {
  auto flags = std::make_shared<ModelFlags>();
  auto* command = app.add_subcommand("model", "Model files on the nodes");
  command->require_subcommand(1);
  auto* listed = command->add_subcommand("list",
                                         "Prints the models in the nodes' models_dir, and which "
                                         "node lacks one or has another file.\n\n"
                                         "Example:\n  flotilla model list lab");
  listed->add_option("cluster", flags->cluster, "Its id (default: all clusters)");
  add_server_flags(*listed, flags->access);
  listed->callback([flags, &result] { result.exit_code = list(*flags); });
}

}  // namespace flotilla::cli
