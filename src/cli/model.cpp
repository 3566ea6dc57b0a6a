#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include <boost/asio/steady_timer.hpp>
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

struct SyncFlags {
  ServerAccess access;
  api::SyncSpec spec;
  std::string cancel;
  bool no_wait = false;
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
  const auto found = wait_for<api::ModelTable>((*admin)->io(), (*admin)->client().models());
  if (!found) return tell_error(found.error());
  const bool known = std::ranges::find(found->clusters, flags.cluster) != found->clusters.end();
  if (!flags.cluster.empty() && !known)
    return tell_error({.code = Code::NotFound,
                       .message = fmt::format("there is no cluster \"{}\"", flags.cluster)});
  std::vector<std::vector<std::string>> lines{
      {"CLUSTER", "MODEL", "SIZE", "QUANTISATION", "NODES", ""}};
  for (const api::ModelRow& row : found->rows) {
    if (!flags.cluster.empty() && row.cluster != flags.cluster) continue;
    lines.push_back({row.cluster, row.model.file.path, bytes_text(row.model.file.bytes),
                     row.model.file.quantization, fmt::format("{}", row.model.nodes.size()),
                     note(row.model)});
  }
  if (lines.size() == 1)
    fmt::print("no models: a cluster's models_dir names the folder where its nodes have them\n");
  else
    fmt::print("{}", table(lines));
  for (const api::ModelTrouble& one : found->troubles)
    if (flags.cluster.empty() || one.cluster == flags.cluster)
      fmt::print("{} {}: {}\n", printable(one.cluster), printable(one.node), printable(one.error));
  return 0;
}

const char* word_of(const api::TransferNode& node) {
  switch (node.state) {
    case api::TransferState::Waiting: return "waiting";
    case api::TransferState::Running: return "copying";
    case api::TransferState::Done: return "there";
    case api::TransferState::Failed: return "failed";
    case api::TransferState::Cancelled: return "cancelled";
  }
  return "";
}

// Bars on a terminal; elsewhere a line when a node's state changes.
class SyncProgress {
 public:
  void show(const api::Transfer& transfer) {
    std::vector<std::string> lines;
    for (const api::TransferNode& node : transfer.nodes) {
      std::string line = fmt::format(
          "  {:<16} {} {:>10} of {:<10} {}", node.node, bar(node.done_bytes, node.total_bytes, 24),
          bytes_text(node.done_bytes), bytes_text(node.total_bytes), word_of(node));
      if (node.bytes_per_s > 0)
        line += fmt::format(", {}/s", bytes_text(static_cast<std::int64_t>(node.bytes_per_s)));
      if (const auto eta = node.eta_s()) line += fmt::format(", {} to go", duration_text(*eta));
      lines.push_back(std::move(line));
      if (!terminal_ && std::exchange(said_[node.node], word_of(node)) != word_of(node))
        fmt::print("{}: {} ({} of {})\n", node.node, word_of(node), bytes_text(node.done_bytes),
                   bytes_text(node.total_bytes));
    }
    if (terminal_) lines_.draw(lines);
    std::fflush(stdout);
  }

 private:
  const bool terminal_ = stdout_is_terminal();
  LiveLines lines_;
  std::map<std::string, std::string> said_;
};

Task<api::Transfer> follow(client::AdminClient& admin, api::Transfer transfer) {
  const Executor executor = co_await boost::asio::this_coro::executor;
  boost::asio::steady_timer timer(executor);
  SyncProgress progress;
  progress.show(transfer);
  while (transfer.state() == api::TransferState::Running) {
    timer.expires_after(std::chrono::milliseconds(200));
    co_await timer.async_wait(kAwait);
    auto now = co_await admin.transfer(transfer.id);
    if (!now) co_return fail(now.error());
    transfer = std::move(*now);
    progress.show(transfer);
  }
  co_return transfer;
}

int sync(const SyncFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const auto begun =
      wait_for<api::Transfer>((*admin)->io(), (*admin)->client().sync_model(flags.spec));
  if (!begun) return tell_error(begun.error());
  if (begun->nodes.empty()) {
    fmt::print("{}: every node has it\n", begun->model);
    return 0;
  }
  fmt::print("{} ({}) from node {}: transfer {}\n", begun->model, bytes_text(begun->total_bytes),
             begun->source, begun->id);
  if (flags.no_wait) return 0;
  const auto ended = wait_for<api::Transfer>((*admin)->io(), follow((*admin)->client(), *begun));
  if (!ended) return tell_error(ended.error());
  for (const api::TransferNode& node : ended->nodes)
    if (!node.error.empty()) fmt::print(stderr, "{}: {}\n", node.node, node.error);
  return ended->state() == api::TransferState::Done ? 0 : 1;
}

int cancel(const SyncFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const auto done =
      wait_for<void>((*admin)->io(), (*admin)->client().cancel_transfer(flags.cancel));
  if (!done) return tell_error(done.error());
  fmt::print("{}: cancelled; what came is kept, and the next sync goes on from there\n",
             flags.cancel);
  return 0;
}

void add_sync(const App& command, CommandResult& result) {
  auto flags = std::make_shared<SyncFlags>();
  const auto added = command.add_subcommand(
      "sync",
      "Copies a model to the nodes that lack it, and shows how far each is. Ctrl-C ends the "
      "showing; the server goes on copying.\n\n"
      "Examples:\n"
      "  flotilla model sync lab SmolLM2-135M-Instruct.Q4_1.gguf\n"
      "  flotilla model sync --cancel t1");
  const auto cluster = added.add_option("cluster", flags->spec.cluster, "Its id");
  const auto model = added.add_option("model", flags->spec.model, "Its path in models_dir");
  added.add_option("--node", flags->spec.nodes,
                   "Only to this one (repeat it); also one that has another file of that name");
  added.add_option("--from", flags->spec.from,
                   "The node whose file it is, where they have different ones (default: one whose "
                   "file most of them have)");
  added.add_flag("--no-wait", flags->no_wait, "Returns at once");
  const auto stop = added.add_option("--cancel", flags->cancel, "A transfer that is to end");
  add_server_flags(added, flags->access);
  added.callback([=, &result] {
    if (!stop.given() && !(cluster.given() && model.given())) throw_missing("cluster and model");
    result.exit_code = stop.given() ? cancel(*flags) : sync(*flags);
  });
}

}  // namespace

void add_model_command(const App& app, CommandResult& result) {
  auto flags = std::make_shared<ModelFlags>();
  const auto command = app.add_subcommand("model", "Model files on the nodes");
  command.require_subcommand();
  const auto listed =
      command.add_subcommand("list",
                             "Prints the models in the nodes' models_dir, and which "
                             "node lacks one or has another file.\n\n"
                             "Example:\n  flotilla model list lab");
  listed.add_option("cluster", flags->cluster, "Its id (default: all clusters)");
  add_server_flags(listed, flags->access);
  listed.callback([flags, &result] { result.exit_code = list(*flags); });
  add_sync(command, result);
}

}  // namespace flotilla::cli
