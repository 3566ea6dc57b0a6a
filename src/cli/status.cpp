#include <memory>

#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/server_access.h"
#include "cli/terminal.h"
#include "client/admin_client.h"

namespace flotilla::cli {
namespace {

struct StatusFlags {
  ServerAccess access;
  bool watch = false;
  bool json = false;
};

Task<std::vector<api::ClusterStatus>> ask_all(client::AdminClient& admin) {
  const auto clusters = co_await admin.clusters();
  if (!clusters) co_return fail(clusters.error());
  std::vector<api::ClusterStatus> all;
  for (const api::ClusterSpec& cluster : *clusters) {
    auto status = co_await admin.status(cluster.id);
    if (!status) co_return fail(status.error());
    status->spec = cluster;
    all.push_back(std::move(*status));
  }
  co_return all;
}

// "replica · batch", "replica 1/2": the dashboard's pills.
std::string pills(const api::PoolStatus& pool) {
  std::string text = "replica";
  const int live = pool.replicas_live();
  if (live < static_cast<int>(pool.replicas.size()))
    text += fmt::format(" {}/{}", live, pool.replicas.size());
  if (pool.batch) text += " · batch";
  return text;
}

std::string replica_note(const api::ReplicaStatus& replica) {
  std::string note;
  const auto add = [&note](const std::string& text) { note += (note.empty() ? "" : "; ") + text; };
  if (replica.live) {
    if (replica.restarts > 0) add(fmt::format("restarted {}×", replica.restarts));
    if (replica.resident_bytes > 0) add(bytes_text(replica.resident_bytes));
    if (replica.step_overhead > 0) {
      add(fmt::format("{:.1f} % of a step is overhead", 100 * replica.step_overhead));
    }
    return note;
  }
  if (replica.state == "loading" && replica.model_bytes > 0) {
    note =
        fmt::format("{} of {}", bytes_text(replica.loaded_bytes), bytes_text(replica.model_bytes));
  }
  if (replica.next_retry_in_s)
    note = fmt::format("again in {}", duration_text(*replica.next_retry_in_s));
  if (!replica.last_error.empty()) add(replica.last_error);
  return note;
}

std::string text_of(const std::vector<api::ClusterStatus>& clusters) {
  if (clusters.empty())
    return "no clusters; add one with: flotilla cluster add NAME --node NAME*COUNT\n";
  std::vector<std::vector<std::string>> rows{
      {"CLUSTER", "MODEL", "NODE", "STATE", "BUSY", "TOKENS/S", ""}};
  for (const api::ClusterStatus& cluster : clusters) {
    if (cluster.pools.empty() && cluster.loading.empty()) {
      rows.push_back(
          {cluster.spec.id, "nothing loaded", fmt::format("{} nodes", cluster.spec.nodes.size())});
    }
    for (const api::LoadingStatus& loading : cluster.loading) {
      for (const api::NodeLoad& node : loading.nodes) {
        rows.push_back(
            {cluster.spec.id, loading.alias, node.node, node.phase, "", "",
             fmt::format("{} of {}", bytes_text(node.loaded_bytes), bytes_text(node.total_bytes))});
      }
    }
    for (const api::PoolStatus& pool : cluster.pools) {
      rows.push_back(
          {cluster.spec.id, pool.alias, pills(pool), "",
           fmt::format("{}{}", pool.in_flight,
                       pool.queue_depth > 0 ? fmt::format(" + {} waiting", pool.queue_depth) : ""),
           fmt::format("{:.1f}", pool.tokens_per_s), pool.batch_reason});
      for (const api::ReplicaStatus& replica : pool.replicas) {
        rows.push_back({"", "", replica.node, replica.state, fmt::format("{}", replica.busy_count),
                        fmt::format("{:.1f}", replica.tokens_per_s), replica_note(replica)});
      }
    }
  }
  return table(rows);
}

std::string json_of(const std::vector<api::ClusterStatus>& clusters) {
  std::string out = R"({"clusters":[)";
  for (const api::ClusterStatus& cluster : clusters) {
    if (&cluster != &clusters.front()) out += ',';
    out += api::status_json(cluster);
  }
  return out + "]}\n";
}

// Once a second until Ctrl-C; a server that is away for a while is said so and waited for.
Task<void> watch(client::AdminClient& admin, bool json) {
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
  LiveLines lines;
  while (true) {
    const auto all = co_await ask_all(admin);
    const std::string text = !all   ? all.error().message + "\n"
                             : json ? json_of(*all)
                                    : text_of(*all);
    if (json || !stdout_is_terminal()) {
      fmt::print("{}", text);
      std::fflush(stdout);
    } else {
      std::vector<std::string> rows;
      for (std::size_t from = 0; from < text.size();) {
        const std::size_t end = text.find('\n', from);
        rows.push_back(text.substr(from, end - from));
        from = end + 1;
      }
      lines.draw(rows);
    }
    timer.expires_after(std::chrono::seconds(1));
    co_await timer.async_wait(kAwait);
  }
}

int status(const StatusFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  if (flags.watch) {
    boost::asio::signal_set stop((*admin)->io(), SIGINT, SIGTERM);
    stop.async_wait([&](auto, int) { (*admin)->io().stop(); });
    (void)wait_for<void>((*admin)->io(), watch((*admin)->client(), flags.json));
    return 0;
  }
  const auto all =
      wait_for<std::vector<api::ClusterStatus>>((*admin)->io(), ask_all((*admin)->client()));
  if (!all) return tell_error(all.error());
  fmt::print("{}", flags.json ? json_of(*all) : text_of(*all));
  return 0;
}

}  // namespace

void add_status_command(const App& app, CommandResult& result) {
  auto flags = std::make_shared<StatusFlags>();
  const auto command =
      app.add_subcommand("status",
                         "Prints what a running server serves, and how each replica is.\n\n"
                         "Examples:\n"
                         "  flotilla status --watch\n"
                         "  flotilla status --server http://127.0.0.1:8001 --json");
  command.add_flag("--watch", flags->watch, "Again every second, until Ctrl-C");
  command.add_flag("--json", flags->json, "One line of JSON (with --watch: one a second)");
  add_server_flags(command, flags->access);
  command.callback([flags, &result] { result.exit_code = status(*flags); });
}

}  // namespace flotilla::cli
