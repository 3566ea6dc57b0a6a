#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "api/admin.h"
#include "api/inventory.h"
#include "api/usage.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/task.h"
#include "gateway/blocking_thread.h"
#include "gateway/fleet.h"
#include "gateway/knobs.h"
#include "gateway/name_watch.h"
#include "store/store.h"

namespace flotilla::gateway {

// The control plane: which clusters and pools are declared, and the steps of declaring them.
// Desired state is written before anything is done, so that a restart brings it back. I/O thread
// only; what blocks runs on its one thread.
class Control {
 public:
  using Options = Fleet::Options;
  Control(Options options, store::Store store);

  // Brings back what was declared. Before the loop runs: it reads the disk, and declares the pools
  // that come up beside the serving of requests.
  void restore();
  // No pool takes new work; streams get `drain`, then runners end (or are kept for a successor).
  Awaitable<void> close(nodes::NodeLink::Runners runners);

  // --- Clusters ---
  std::vector<api::ClusterSpec> clusters() const;
  const api::ClusterSpec* find_cluster(const std::string& id) const;
  Task<api::ClusterSpec> put_cluster(api::ClusterSpec spec);
  Task<void> delete_cluster(std::string id);

  // --- Pools ---
  // Answers when every replica is ready or failed its first attempt (`wait`), else once it is
  // declared.
  struct Loaded {
    std::shared_ptr<PoolRuntime> pool;
    double load_s = 0;
    bool complete = true;  // false: still under way (wait=false)
  };
  Task<Loaded> load(std::string cluster, api::LoadSpec load);
  // The pool's alias, once its last runner is gone.
  Task<std::string> unload(std::string cluster, api::UnloadSpec unload);
  // A new generation takes over and the old one ends, without a failed request: beside each other
  // where the memory allows, else node by node. Answers when the last old runner is gone.
  // BadGateway: no new replica came up, and the pool is as it was.
  Task<Loaded> reload(std::string cluster, api::ReloadSpec reload);
  // Restart answers when the replica is ready again or its first attempt failed.
  struct ReplicaOrder {
    std::string cluster;
    std::string alias;
    std::string node;
    api::ReplicaAction action{};
  };
  Task<std::shared_ptr<PoolRuntime>> order_replica(ReplicaOrder order);
  std::shared_ptr<PoolRuntime> find_pool(const std::string& alias) const;  // by alias
  std::shared_ptr<PoolRuntime> find_pool_for(
      const std::string& model) const;  // or a second alias, or the default
  const std::vector<std::shared_ptr<PoolRuntime>>& pools() const { return fleet_.pools(); }
  const Fleet& fleet() const { return fleet_; }
  Fleet& nodes() { return fleet_; }
  const std::filesystem::path& state_dir() const { return options_.state_dir; }
  Duration drain_limit() const { return options_.knobs->drain; }
  // A cluster's nodes as its pools have them: with the cluster's models_dir where they have none,
  // and of an http node whose name has several addresses one for each.
  std::vector<api::NodeSpec> nodes_of(const api::ClusterSpec& cluster) const;
  // What each node says to a load; nodes without an agent are left out. All are asked at once.
  Awaitable<std::vector<api::NodePreflight>> ask_nodes(api::ClusterSpec cluster,
                                                       GenerationSpec generation);
  int pool_width(const api::LoadSpec& load) const;
  // Unprocessable: the load names an engine that is not configured; says what to write where.
  Result<void> check_engine(const api::LoadSpec& load) const;

  // --- Operation ---
  Task<void> store_settings(std::map<std::string, std::optional<std::string>> changes);
  void apply_settings();  // the knobs have changed: pools that run take over what they can
  Result<std::vector<store::StoredKey>> keys() const { return store_.keys(); }  // before the loop
  Task<void> store_key(store::StoredKey key);
  Task<void> change_key(store::StoredKey key);
  Task<void> delete_key(std::string id);
  Task<void> store_usage(std::vector<store::StoredUsage> more);
  Task<std::vector<store::StoredUsage>> usage(api::UsageBy by);
  Task<std::vector<store::StoredEvent>> events(int most);
  // Written beside; a failure is only logged, and so is what comes while 1,000 wait for the disk.
  void note_event(store::StoredEvent event);
  std::uint64_t events_noted() const { return events_noted_; }  // counts those written down

  // Grows with each change that status shows.
  std::uint64_t version() const;

 private:
  // What is being done to a pool or a cluster, for as long as it lives.
  struct Work {
    std::string cluster;
    std::string what;  // "loaded", "edited", …
  };
  class UnderWay;
  Result<void> check_idle(const std::string& cluster, const std::string& key) const;
  Result<void> check_cluster_idle(const std::string& cluster) const;

  // control.cpp
  Result<void> check_nodes(const api::ClusterSpec& spec) const;
  void apply_nodes(const api::ClusterSpec& spec);
  void declare_nodes();
  Awaitable<void> follow_names();

  // control_pools.cpp
  Result<void> check_new_pool(const std::string& cluster, const api::LoadSpec& load) const;
  Result<std::shared_ptr<PoolRuntime>> choose_pool(const std::string& cluster,
                                                   const std::string& alias) const;
  cluster::PoolSettings pool_settings(const api::LoadSpec& load) const;
  Task<void> preflight(const api::ClusterSpec& cluster, const GenerationSpec& generation);
  std::shared_ptr<PoolRuntime> make_pool(const api::ClusterSpec& cluster,
                                         GenerationSpec generation);
  Task<std::int64_t> declare(std::string cluster, api::LoadSpec load);
  Awaitable<bool> wait_until(std::shared_ptr<PoolRuntime> pool, std::function<bool()> done);
  Task<void> remove_pool(std::shared_ptr<PoolRuntime> pool, bool force);

  // control_reload.cpp
  Task<bool> fits_beside(const api::ClusterSpec& cluster, const PoolRuntime& pool,
                         const GenerationSpec& next);
  Awaitable<bool> bring_beside(std::shared_ptr<PoolRuntime> pool, std::vector<api::NodeSpec> nodes);
  Awaitable<bool> bring_in_turn(std::shared_ptr<PoolRuntime> pool,
                                std::vector<api::NodeSpec> nodes);
  void abandon(PoolRuntime& pool);

  Awaitable<void> write_event(store::StoredEvent event);

  template <class Work>
  auto on_disk(Work work) {
    return blocking_.run(std::move(work));
  }

  Options options_;
  store::Store store_;
  BlockingThread blocking_;
  Fleet fleet_;
  NameWatch names_;
  bool following_names_ = false;
  std::map<std::string, api::ClusterSpec> clusters_;
  std::map<std::string, Work> under_way_;  // by alias, or "cluster ID"
  std::size_t events_waiting_ = 0;         // for the disk
  std::uint64_t events_noted_ = 0;
  std::uint64_t changes_ = 0;
  boost::asio::steady_timer changed_;  // cancelled at each change: who waits looks again
};

}  // namespace flotilla::gateway
