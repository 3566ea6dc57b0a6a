#include "gateway/node_care.h"

#include <algorithm>
#include <sstream>

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "gateway/engine_probe.h"
#include "gateway/engine_watch.h"
#include "nodes/child_run.h"
#include "nodes/host_keys.h"
#include "platform/cpu_info.h"
#include "platform/process.h"
#include "platform/socket_dir.h"

namespace flotilla::gateway {
namespace {

using nodes::ChildOutput;
using nodes::ChildRun;
using nodes::SshTarget;

constexpr std::chrono::seconds kQuick{20};
constexpr std::chrono::minutes kCopy{30};
constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::seconds kBack{60};  // the agent's link, after its restart

// $1: where to, or - for where it is found, else ~/.local/bin. It is tried there before it takes
// the old one's place, whose runners go on with the file that they have open. The runners that a
// package brought for better processors (agent/runner_command) would be taken in its stead: those
// of another version go.
constexpr const char* kInstall =
    "p=$1; if [ \"$p\" = - ]; then "
    "PATH=$PATH:/opt/homebrew/bin:/usr/local/bin:$HOME/.local/bin; "
    "p=$(command -v flotilla) || p=$HOME/.local/bin/flotilla; fi; "
    "mkdir -p \"${p%/*}\" && cat >\"$p.new\" && chmod 755 \"$p.new\" && "
    "v=$(\"$p.new\" version) && mv -f \"$p.new\" \"$p\" || exit; "
    "for o in \"${p%/*}\"/../lib/flotilla/flotilla-x86-64-v*; do if [ -f \"$o\" ]; then "
    "[ \"$(\"$o\" version)\" = \"$v\" ] || rm -f \"$o\" || exit; fi; done; echo \"$v at $p\"";

// "Linux x86_64" -> linux-x86_64
std::string platform_of(const std::string& uname) {
  std::istringstream in(uname);
  std::string system;
  std::string machine;
  in >> system >> machine;
  if (system == "Darwin") return "macos-" + machine;
  std::ranges::transform(system, system.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return system + "-" + machine;
}

Error unusable(const SshTarget& target, const std::string& node, const ChildOutput& output) {
  const std::string remedy = explain_ssh(target, node, output.err);
  return Error{.code = Code::Unprocessable,
               .message = fmt::format("node {}: {}{}{}", node, output.failure(),
                                      remedy.empty() ? "" : "; ", remedy)};
}

Task<std::string> run_there(CareOptions care, api::NodeSpec node, Result<platform::Command> command,
                            std::chrono::milliseconds limit) {
  if (!command) co_return fail(command.error());
  ChildRun run{.command = std::move(*command), .limit = limit};
  auto output = co_await nodes::run_child(care.executor, std::move(run));
  if (!output)
    co_return fail(Code::Unprocessable,
                   fmt::format("node {}: {}", node.id, output.error().message));
  if (!output->ok()) co_return fail(unusable(ssh_target(node), node.id, *output));
  co_return std::move(output->out);
}

Result<void> needs_ssh(const api::NodeSpec& node, const char* what) {
  if (node.transport == "ssh") return {};
  return fail(Code::Unprocessable, fmt::format("node {} is reached by {}, not by ssh; there is "
                                               "nothing to {}",
                                               node.id, node.transport, what));
}

// Our program for that platform: ourselves, or one that lies beside us as flotilla-PLATFORM.
Result<std::filesystem::path> program_for(const std::string& platform, const std::string& node) {
  std::filesystem::path ours = platform::executable_path();
  if (platform == platform::platform_name()) return ours;
  auto other = ours.parent_path() / ("flotilla-" + platform);
  std::error_code failed;
  if (std::filesystem::exists(other, failed)) return other;
  return fail(Code::Unprocessable,
              fmt::format("node {} is {} and there is no flotilla of that platform here: build it "
                          "on that machine (README), or put one here as {} and try again",
                          node, platform, other.string()));
}

struct Held {
  std::shared_ptr<PoolRuntime> pool;
  NodeId node;
};

std::vector<Held> replicas_there(Control& control, const std::string& machine) {
  std::vector<Held> out;
  for (const auto& pool : control.pools()) {
    for (const NodeId& node : pool->nodes()) {
      const api::NodeSpec* spec = pool->node_spec(node);
      if (spec != nullptr && machine_key(*spec) == machine) out.push_back({pool, node});
    }
  }
  return out;
}

bool has_replica(const Held& held) {
  const auto nodes = held.pool->nodes();
  return std::ranges::find(nodes, held.node) != nodes.end();
}

const cluster::ReplicaStatus* find_status(const Held& held,
                                          const std::vector<cluster::ReplicaStatus>& all) {
  const auto found = std::ranges::find(all, held.node, &cluster::ReplicaStatus::node);
  return found == all.end() ? nullptr : &*found;
}

template <class Condition>
Awaitable<bool> wait_for(CareOptions care, Condition condition, Duration limit) {
  boost::asio::steady_timer timer(care.executor);
  const Instant until = care.clock->now() + limit;
  while (!condition()) {
    if (care.clock->now() >= until) co_return false;
    timer.expires_after(kLook);
    co_await timer.async_wait(kAwait);
  }
  co_return true;
}

void drain(const Held& held) {
  held.pool->brain().drain(held.pool->replica_of(held.node), cluster::AfterDrain::Hold, false,
                           held.pool->now());
  held.pool->pump();
}

void resume(const Held& held) {
  if (!has_replica(held)) return;
  held.pool->brain().resume(held.pool->replica_of(held.node), held.pool->now());
  held.pool->pump();
}

// Requests end or, after DRAIN_S, go on elsewhere; the agent ends and is started by its link again.
// What was drained already is not ours to resume.
Awaitable<bool> restart_agent(CareOptions care, std::shared_ptr<Machine> machine, Duration limit) {
  const std::vector<Held> held = replicas_there(*care.control, machine->key);
  std::vector<Held> ours;
  for (const Held& one : held) {
    const auto all = one.pool->replicas();
    const auto* status = find_status(one, all);
    if (status != nullptr && status->state == cluster::ReplicaState::Draining) continue;
    ours.push_back(one);
    drain(one);
  }
  const auto idle = [&] {
    return std::ranges::all_of(held, [](const Held& one) {
      const auto all = one.pool->replicas();
      const auto* status = find_status(one, all);
      return status == nullptr || status->busy_count == 0;
    });
  };
  co_await wait_for(care, idle, limit);
  machine->link->restart_agent();
  const auto gone = [&] { return !machine->is_up(); };
  co_await wait_for(care, gone, kBack);
  const auto back = [&] { return machine->is_up(); };
  const bool up = co_await wait_for(care, back, kBack);
  const auto loaded = [&] {
    return std::ranges::all_of(held, [](const Held& one) {
      const auto all = one.pool->replicas();
      const auto* status = find_status(one, all);
      return status == nullptr || status->live || status->state == cluster::ReplicaState::Waiting;
    });
  };
  if (up) co_await wait_for(care, loaded, kCopy);
  for (const Held& one : ours) resume(one);
  co_return up;
}

// What of the node's description to look at again.
const char* remedy(const api::NodeSpec& node, const Error& error) {
  if (error.reason == "connect" || error.code == Code::DeadlineExceeded)
    return "start the server there, let it listen at more than its own machine's 127.0.0.1, or "
           "correct url";
  if (error.reason == "key" && node.api_key.empty()) return "it wants a key: set api_key";
  if (error.reason == "key") return "correct api_key";
  if (error.reason == "path")
    return "correct url: it ends where /models and /chat begin, often /v1";
  if (error.reason == "model") return "set upstream_model to a name that it knows";
  return "look at its log; correct url or upstream_model";
}

// A server that is not ours answers what a replica is asked before it serves.
Task<api::NodeTest> test_server(CareOptions care, api::NodeSpec node) {
  const Instant began = care.clock->now();
  auto way = way_to(node);
  if (!way) co_return fail(way.error());
  api::ForeignEngine engine = engine_at(node);
  http::Client client(care.executor, std::move(way->endpoint));
  EngineProbe probe(care.executor, client, engine);
  auto whole = co_await probe.health();
  if (whole) {
    const auto met = co_await probe.meet(1);
    if (!met) whole = fail(met.error());
  }
  if (!whole) {
    co_return fail(Code::Unprocessable,
                   fmt::format("node {}: {}; {}", node.id, whole.error().message,
                               remedy(node, whole.error())));
  }
  api::NodeTest test;
  test.node = node.id;
  test.model = engine.model;
  test.engine = engine.name;
  test.took_ms = to_s(care.clock->now() - began) * 1000;
  co_return test;
}

}  // namespace

Task<api::NodeTest> test_node(CareOptions care, api::NodeSpec node) {
  api::NodeTest test;
  test.node = node.id;
  const Instant began = care.clock->now();
  if (node.is_local()) {
    test.version = care.version;
    co_return test;
  }
  if (node.transport == "http") co_return co_await test_server(care, std::move(node));
  auto command = nodes::ssh_flotilla(ssh_target(node), {"version"});
  const auto said = co_await run_there(care, node, std::move(command), kQuick);
  if (!said) co_return fail(said.error());
  std::istringstream words(*said);
  std::string name;
  words >> name >> test.version;
  if (name != "flotilla")
    co_return fail(Code::Unprocessable,
                   fmt::format("node {}: the program there is no flotilla", node.id));
  test.outdated = test.version != care.version;
  test.took_ms = to_s(care.clock->now() - began) * 1000;
  co_return test;
}

Task<api::TrustAnswer> trust_node(CareOptions care, api::NodeSpec node, api::TrustOrder order) {
  if (auto may = needs_ssh(node, "trust"); !may) co_return fail(may.error());
  const auto scratch = platform::make_socket_dir(care.state_dir / "ssh");
  if (!scratch) co_return fail(scratch.error());
  auto work =
      order.fingerprint.empty()
          ? nodes::look_at_host_keys(care.executor, ssh_target(node), *scratch)
          : nodes::store_host_keys(care.executor, ssh_target(node), *scratch, order.fingerprint);
  auto keys = co_await std::move(work);
  if (!keys) co_return fail(keys.error());
  const auto machine = care.control->nodes().find_machine(node);
  if (keys->known && machine) machine->link->retry_now();
  api::TrustAnswer answer;
  answer.node = node.id;
  answer.host = node.host;
  answer.fingerprints = std::move(keys->fingerprints);
  answer.file = std::move(keys->file);
  answer.known = keys->known;
  answer.changed = keys->changed;
  co_return answer;
}

Task<api::BootstrapAnswer> bootstrap_node(CareOptions care, api::NodeSpec node) {
  if (auto may = needs_ssh(node, "install"); !may) co_return fail(may.error());
  const SshTarget target = ssh_target(node);
  auto ask = nodes::ssh_script(target, "uname -s; uname -m", {});
  const auto uname = co_await run_there(care, node, std::move(ask), kQuick);
  if (!uname) co_return fail(uname.error());
  api::BootstrapAnswer answer;
  answer.node = node.id;
  answer.platform = platform_of(*uname);
  const auto program = program_for(answer.platform, node.id);
  if (!program) co_return fail(program.error());
  auto copy = nodes::ssh_script(target, kInstall,
                                {target.flotilla_path.empty() ? "-" : target.flotilla_path});
  if (copy) copy->in_file = *program;
  log::info("node {}: copying {} there", node.id, program->string());
  const auto copied = co_await run_there(care, node, std::move(copy), kCopy);
  if (!copied) co_return fail(copied.error());
  std::istringstream words(*copied);
  std::string word;
  words >> word >> answer.version >> word >> answer.path;

  const auto machine = care.control->nodes().find_machine(node);
  if (machine && machine->is_up()) {
    answer.restarted = true;
    answer.up = co_await restart_agent(care, machine, care.control->drain_limit());
  } else if (machine) {
    machine->link->restart_agent();
    const auto back = [&] { return machine->is_up(); };
    answer.up = co_await wait_for(care, back, kBack);
  }
  co_return answer;
}

}  // namespace flotilla::gateway
