#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/admin.h"
#include "api/engine_template.h"
#include "base/clock.h"
#include "base/random.h"
#include "gateway/knobs.h"
#include "gateway/machine.h"
#include "gateway/pool_runtime.h"
#include "nodes/node_link.h"

namespace flotilla::gateway {

// The nodes as the pools' hands: one link for each machine that a cluster names; starts and stops
// runners through the machines' agents, probes foreign engines, and brings the news to every pool
// concerned. One machine's trouble is told to no pool that has nothing there. I/O thread only.
class Fleet final : public Launcher {
 public:
  struct Options {
    Executor executor;
    const Clock* clock = nullptr;
    Random* random = nullptr;
    const Knobs* knobs = nullptr;
    std::filesystem::path state_dir;
    std::string state_id;
    std::string version;  // ours: agents of another one are shown as outdated
    std::vector<api::EngineTemplate> engines = {};  // that a load may name
  };
  explicit Fleet(Options options);
  ~Fleet() override;

  void start();
  // Runners end (an upgrade keeps them for AGENT_GRACE_S), then the agents. All machines at once.
  Awaitable<void> close(nodes::NodeLink::Runners runners);

  // Every node of every cluster: machines among them that are new are linked to, those that are
  // missing are left once nothing of a pool runs there.
  void declare(const std::vector<api::NodeSpec>& nodes);

  void attach(const std::shared_ptr<PoolRuntime>& pool);
  void detach(const std::shared_ptr<PoolRuntime>& pool);
  const std::vector<std::shared_ptr<PoolRuntime>>& pools() const { return pools_; }

  cluster::Link link_of(const api::NodeSpec& node) const;
  api::NodeStatus status_of(const api::NodeSpec& node) const;
  std::string host_of(const api::NodeSpec& node) const;
  // Null for an http node, and for one whose machine no cluster names.
  std::shared_ptr<Machine> find_machine(const api::NodeSpec& node) const;
  // Of a node with an agent that is linked to: the machine itself, however it is reached; before it
  // has been, the way to it.
  std::string place_of(const api::NodeSpec& node) const;
  // Until it is known whether each of the machines can be reached.
  Awaitable<void> meet(std::vector<api::NodeSpec> nodes);

  // How a pool's runner on a node is started; `replicas`: those of all pools on its machine.
  api::RunnerSpec runner_spec(const GenerationSpec& pool, const api::NodeSpec& node,
                              int replicas) const;
  int replicas_on(const std::string& machine) const;
  const std::vector<api::EngineTemplate>& engines() const { return options_.engines; }
  // The template that a model folder takes on the node's machine; it may not be configured.
  std::string_view engine_for_folders(const api::NodeSpec& node) const;

  void start(const std::shared_ptr<PoolRuntime>& pool,
             const std::shared_ptr<LaunchRuntime>& launch) override;
  bool stop(const LaunchRuntime& launch, Duration grace) override;

  // Callback after any change that status shows and no pool's brain knows (links).
  void on_change(std::function<void()> callback) { changed_ = std::move(callback); }

 private:
  using Found = std::pair<std::shared_ptr<PoolRuntime>, std::shared_ptr<LaunchRuntime>>;
  Found find(const std::string& wire_id) const;
  std::string held_text(const GenerationSpec& pool, const api::NodeSpec& node) const;
  std::optional<api::EngineSpec> engine_spec(const GenerationSpec& pool, const api::NodeSpec& node,
                                             int threads) const;
  Result<void> may_start(const GenerationSpec& pool, const Machine* machine) const;
  void add_machine(const api::NodeSpec& node);
  Awaitable<void> leave(std::shared_ptr<Machine> machine);
  bool is_used(const Machine& machine) const;
  void tell_change();

  // fleet_events.cpp
  void on_link(Machine& machine, const nodes::LinkStatus& status);
  void on_agent(Machine& machine, const api::AgentEvent& event);
  void take(Machine& machine, const api::AgentHello& hello);
  void take(Machine& machine, const api::AgentTelemetry& telemetry);
  void take(Machine& machine, const api::ReplicaSpawned& spawned);
  void take(Machine& machine, const api::ReplicaLoading& loading);
  void take(Machine& machine, const api::ReplicaReady& ready);
  void take(Machine& machine, const api::ReplicaExited& exited);
  void adopt(Machine& machine, const std::shared_ptr<PoolRuntime>& pool, const NodeId& node,
             const api::HeldReplica& held);
  void serve(const std::shared_ptr<PoolRuntime>& pool, const std::shared_ptr<LaunchRuntime>& launch,
             const std::string& socket);
  void serve_http_node(const std::shared_ptr<PoolRuntime>& pool,
                       const std::shared_ptr<LaunchRuntime>& launch, const api::NodeSpec& node);
  void serve_template(const std::shared_ptr<PoolRuntime>& pool,
                      const std::shared_ptr<LaunchRuntime>& launch,
                      const api::ReplicaSpawned& spawned);

  Options options_;
  MachineOptions for_machines_;
  std::map<std::string, std::shared_ptr<Machine>> machines_;  // by key
  std::map<std::string, std::string> unlinked_;  // keys of machines that cannot be linked -> why
  std::vector<std::shared_ptr<PoolRuntime>> pools_;
  std::function<void()> changed_;
};

}  // namespace flotilla::gateway
