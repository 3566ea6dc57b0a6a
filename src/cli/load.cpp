#include <algorithm>
#include <memory>
#include <unordered_map>

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/server_access.h"
#include "cli/terminal.h"
#include "client/admin_client.h"
#include "model/alias.h"

namespace flotilla::cli {
namespace {

struct LoadFlags {
  ServerAccess access;
  std::string cluster;
  api::LoadSpec spec;
  bool no_wait = false;
  bool replace = false;
};

struct UnloadFlags {
  ServerAccess access;
  std::string cluster;
  std::string alias;
  bool force = false;
};

// Shows how far each node is: bars on a terminal, else a line when a node's phase changes.
class LoadProgress {
 public:
  void show(const api::LoadingStatus& loading) {
    if (terminal_) {
      std::vector<std::string> lines;
      for (const api::NodeLoad& node : loading.nodes) lines.push_back(bar_line(node));
      lines_.draw(lines);
      return;
    }
    for (const api::NodeLoad& node : loading.nodes) {
      if (std::exchange(phases_[node.node], node.phase) == node.phase) continue;
      fmt::print("{}: {} ({} of {})\n", node.node, node.phase, bytes_text(node.loaded_bytes),
                 bytes_text(node.total_bytes));
      std::fflush(stdout);
    }
  }

  // The bars as they stand when all is done.
  void finish(const api::LoadAnswer& answer) {
    if (!terminal_) return;
    std::vector<std::string> lines;
    for (const api::ReplicaStatus& replica : answer.pool.replicas) {
      api::NodeLoad node;
      node.node = replica.node;
      node.phase = replica.live ? "ready" : replica.state;
      node.total_bytes = replica.model_bytes;
      node.loaded_bytes = replica.live ? replica.model_bytes : replica.loaded_bytes;
      lines.push_back(bar_line(node));
    }
    lines_.draw(lines);
  }

 private:
  static std::string bar_line(const api::NodeLoad& node) {
    std::string line = fmt::format(
        "  {:<16} {} {:>10} of {:<10} {}", node.node, bar(node.loaded_bytes, node.total_bytes, 24),
        bytes_text(node.loaded_bytes), bytes_text(node.total_bytes), node.phase);
    if (node.bytes_per_s > 0 && node.phase == "loading") {
      line += fmt::format(", {}/s", bytes_text(static_cast<std::int64_t>(node.bytes_per_s)));
    }
    if (node.stalled) line += ", stalled";
    return line;
  }

  const bool terminal_ = stdout_is_terminal();
  LiveLines lines_;
  std::unordered_map<std::string, std::string> phases_;
};

// Asks for the status ten times a second until the io_context stops with the load's answer.
Awaitable<void> follow(client::AdminClient& admin, std::string cluster, LoadProgress& progress) {
  const Executor executor = co_await boost::asio::this_coro::executor;
  boost::asio::steady_timer timer(executor);
  while (true) {
    timer.expires_after(std::chrono::milliseconds(100));
    co_await timer.async_wait(kAwait);
    const auto status = co_await admin.status(cluster);
    if (!status) continue;  // the load itself says what is wrong
    for (const api::LoadingStatus& loading : status->loading) progress.show(loading);
  }
}

void print_answer(const api::LoadAnswer& answer) {
  const api::PoolStatus& pool = answer.pool;
  fmt::print("{}: {} of {} replicas ready after {}{}\n", pool.alias, pool.replicas_live(),
             pool.replicas.size(), duration_text(answer.load_s), pool.batch ? ", batch" : "");
  if (!pool.batch_reason.empty()) fmt::print("  no batch: {}\n", pool.batch_reason);
  for (const api::ReplicaStatus& replica : pool.replicas) {
    if (!replica.live && !replica.last_error.empty())
      fmt::print("  {}: {}\n", replica.node, printable(replica.last_error));
  }
}

bool is_coming_up(const api::ReplicaStatus& replica) {
  return !replica.live && (replica.state == "starting" || replica.state == "loading");
}

// The cluster is to serve this pool alone: others go, and so does one of its name that is set
// otherwise.
Task<api::LoadAnswer> load_instead(client::AdminClient& admin, std::string cluster,
                                   api::LoadSpec spec) {
  const std::string alias = spec.alias.empty() ? model::default_alias(spec.model) : spec.alias;
  const auto status = co_await admin.status(cluster);
  if (!status) co_return fail(status.error());
  for (const api::PoolStatus& pool : status->pools) {
    if (pool.alias == alias) continue;
    const auto done = co_await admin.unload(cluster, pool.alias, false);
    if (!done) co_return fail(done.error());
  }
  auto answer = co_await admin.load(cluster, spec);
  if (answer || answer.error().code != Code::Conflict) co_return answer;
  const auto done = co_await admin.unload(cluster, alias, false);
  if (!done) co_return fail(answer.error());
  co_return co_await admin.load(cluster, spec);
}

// A pool that was there already is answered at once, though a server that has just started may
// still be bringing it back.
Task<api::LoadAnswer> load_and_wait(client::AdminClient& admin, std::string cluster,
                                    api::LoadSpec spec, bool replace) {
  auto loading = replace ? load_instead(admin, cluster, spec) : admin.load(cluster, spec);
  auto answer = co_await std::move(loading);
  if (!answer || !spec.wait) co_return answer;
  const Executor executor = co_await boost::asio::this_coro::executor;
  boost::asio::steady_timer timer(executor);
  while (std::ranges::any_of(answer->pool.replicas, is_coming_up)) {
    timer.expires_after(std::chrono::milliseconds(100));
    co_await timer.async_wait(kAwait);
    const auto status = co_await admin.status(cluster);
    if (!status) co_return fail(status.error());
    const auto pool = std::ranges::find(status->pools, answer->pool.alias, &api::PoolStatus::alias);
    if (pool == status->pools.end()) break;
    answer->pool = *pool;
  }
  co_return answer;
}

int load(const LoadFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  api::LoadSpec spec = flags.spec;
  spec.wait = !flags.no_wait;
  LoadProgress progress;
  if (spec.wait) {
    boost::asio::co_spawn((*admin)->io(), follow((*admin)->client(), flags.cluster, progress),
                          [](std::exception_ptr) {});
  }
  const auto answer = wait_for<api::LoadAnswer>(
      (*admin)->io(), load_and_wait((*admin)->client(), flags.cluster, spec, flags.replace));
  if (!answer) return tell_error(answer.error());
  if (flags.no_wait) {
    fmt::print("{}: loading; follow it with: flotilla status --watch\n", answer->pool.alias);
    return 0;
  }
  progress.finish(*answer);
  print_answer(*answer);
  return answer->pool.replicas_live() > 0 ? 0 : 1;
}

int unload(const UnloadFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const auto done = wait_for<void>(
      (*admin)->io(), (*admin)->client().unload(flags.cluster, flags.alias, flags.force));
  if (!done) return tell_error(done.error());
  fmt::print("{}: unloaded\n", flags.alias.empty() ? flags.cluster : flags.alias);
  return 0;
}

void add_load(const App& app, CommandResult& result) {
  auto flags = std::make_shared<LoadFlags>();
  api::LoadSpec& spec = flags->spec;
  const auto command = app.add_subcommand(
      "load",
      "Loads a model on every node of a cluster and waits until it can be asked.\n\n"
      "Examples:\n"
      "  flotilla load local /models/SmolLM2-135M-Instruct.Q4_1.gguf --batch\n"
      "  flotilla load local big.gguf --alias big --context 8192 --no-wait");
  command.add_option("cluster", flags->cluster, "The cluster's id").required();
  command
      .add_option("model", spec.model,
                  "A .gguf, or a folder that an engine serves: absolute, or relative to the "
                  "cluster's models_dir")
      .required();
  command.add_flag("--batch", spec.batch,
                   "Several requests at once on each node (continuous batching)");
  command.add_option("--batch-size", spec.batch_size, "Sequences at once with --batch (default: 8)")
      .between(1, 64);
  command.add_option("--alias", spec.alias,
                     "Name that clients send (default: from the file's name)");
  command.add_option("--context", spec.context,
                     "Most tokens of one request (default: the model's)");
  command.add_option("--kv-type", spec.kv_type, "Type of the KV cache").one_of({"f16", "q8_0"});
  command.add_option("--threads", spec.threads,
                     "Threads of each replica (default: cores / replicas)");
  command.add_option("--gpu-layers", spec.gpu_layers, "Layers on an accelerator");
  command.add_option("--chat-template", spec.chat_template,
                     "Template text instead of the model's own");
  command
      .add_option("--speculate", spec.speculate,
                  "ngram: several tokens a pass where text repeats itself, with the same answers; "
                  "auto: the same (default: off)")
      .one_of({"off", "ngram", "auto"});
  command.add_option("--engine", spec.engine,
                     "An engine of the server's flotilla.yaml instead of our runner");
  command.add_flag("--default", spec.is_default, "Answers unknown model names too");
  command.add_flag("--force", spec.force, "Loads even if the memory seems too small");
  command.add_flag(
      "--replace", flags->replace,
      "First unloads what else the cluster serves, this alias with other settings included");
  command.add_flag("--no-wait", flags->no_wait, "Returns at once");
  add_server_flags(command, flags->access);
  command.callback([flags, &result] { result.exit_code = load(*flags); });
}

void add_unload(const App& app, CommandResult& result) {
  auto flags = std::make_shared<UnloadFlags>();
  const auto command =
      app.add_subcommand("unload",
                         "Lets a model's requests finish, then ends its runners.\n\n"
                         "Example:\n"
                         "  flotilla unload local smollm2-135m-instruct");
  command.add_option("cluster", flags->cluster, "The cluster's id").required();
  command.add_option("alias", flags->alias, "The model (default: the cluster's only one)");
  command.add_flag("--force", flags->force, "Cuts running requests");
  add_server_flags(command, flags->access);
  command.callback([flags, &result] { result.exit_code = unload(*flags); });
}

}  // namespace

void add_load_commands(const App& app, CommandResult& result) {
  add_load(app, result);
  add_unload(app, result);
}

}  // namespace flotilla::cli
