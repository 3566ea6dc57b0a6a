#include "config/plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/nearest.h"
#include "config/spec_tree.h"

namespace flotilla::config {
namespace {

using Action = Step::Action;

class Planner {
 public:
  Planner(const Wanted& wanted, const There& there, bool prune)
      : wanted_(wanted), there_(there), prune_(prune) {}

  Result<Plan> make() {
    if (auto may = check_pools(); !may) return fail(may.error());
    if (auto may = check_settings(); !may) return fail(may.error());
    remove_pools();  // first: what comes may need their memory
    plan_settings();
    plan_clusters();
    plan_pools();
    remove_clusters();
    plan_keys();
    return std::move(plan_);
  }

 private:
  void add(Action action, std::string what, std::string details, decltype(Step::work) work) {
    plan_.steps.push_back({.action = action,
                           .what = std::move(what),
                           .details = std::move(details),
                           .work = std::move(work)});
  }
  // What the file does not have.
  void remove(std::string what, decltype(Step::work) work) {
    if (prune_) return add(Action::Remove, std::move(what), "", std::move(work));
    plan_.left.push_back(std::move(what));
  }

  const api::ClusterSpec* cluster_there(const std::string& id) const {
    const auto& all = there_.declared.clusters;
    const auto found = std::ranges::find(all, id, &api::ClusterSpec::id);
    return found == all.end() ? nullptr : &*found;
  }
  const api::DeclaredPool* pool_there(const std::string& alias) const {
    for (const api::DeclaredPool& pool : there_.declared.pools)
      if (pool.load.alias == alias) return &pool;
    return nullptr;
  }
  bool is_wanted(const api::DeclaredPool& pool) const {
    return std::ranges::any_of(*wanted_.pools, [&](const api::DeclaredPool& other) {
      return other.load.alias == pool.load.alias;
    });
  }

  Result<void> check_pools() const {
    if (!wanted_.pools) return {};
    for (const api::DeclaredPool& pool : *wanted_.pools) {
      const bool in_file =
          wanted_.clusters && std::ranges::find(*wanted_.clusters, pool.cluster,
                                                &api::ClusterSpec::id) != wanted_.clusters->end();
      if (in_file || (cluster_there(pool.cluster) != nullptr && !(prune_ && wanted_.clusters)))
        continue;
      std::vector<std::string_view> known;
      for (const api::ClusterSpec& cluster : there_.declared.clusters) known.push_back(cluster.id);
      if (wanted_.clusters)
        for (const api::ClusterSpec& cluster : *wanted_.clusters) known.push_back(cluster.id);
      return fail(Code::InvalidArgument,
                  fmt::format("pool {} is on cluster \"{}\", which is not declared;{} declare it "
                              "under clusters",
                              pool.load.alias, pool.cluster, did_you_mean(pool.cluster, known)));
    }
    return {};
  }

  Result<void> check_settings() const {
    if (!wanted_.settings) return {};
    for (const auto& [name, setting] : *wanted_.settings) {
      const auto shown = std::ranges::find(there_.settings, name, &api::SettingShown::name);
      std::string wrong;
      if (shown == there_.settings.end()) {
        std::vector<std::string_view> known;
        for (const api::SettingShown& one : there_.settings) known.push_back(one.name);
        wrong = fmt::format("the server has no setting \"{}\";{}", name, did_you_mean(name, known));
      } else if (setting.value < shown->min || setting.value > shown->max) {
        wrong = fmt::format("{} is {}; it takes a number from {} to {}", name, setting.value,
                            shown->min, shown->max);
      } else if (is_pinned(*shown) && shown->value != setting.value) {
        wrong = fmt::format("{} is pinned to {} by the server's {}; take it out there, or here",
                            name, shown->value, shown->source);
      }
      if (!wrong.empty())
        return fail(Code::InvalidArgument, fmt::format("{}: {}", setting.where, wrong));
    }
    return {};
  }

  static bool is_pinned(const api::SettingShown& setting) {
    return setting.source == "flag" || setting.source == "environment";
  }

  void remove_pools() {
    if (!wanted_.pools) return;
    for (const api::DeclaredPool& pool : there_.declared.pools)
      if (!is_wanted(pool))
        remove("pool " + pool.load.alias, PoolStep{.pool = pool, .from = pool.cluster});
  }

  void plan_settings() {
    if (!wanted_.settings) return;
    for (const api::SettingShown& shown : there_.settings) {
      const auto setting = wanted_.settings->find(shown.name);
      const std::string what = "setting " + shown.name;
      if (setting == wanted_.settings->end()) {
        if (shown.source == "stored") remove(what, SettingStep{shown.name, std::nullopt});
        continue;
      }
      const double value = setting->second.value;
      if (is_pinned(shown) || (shown.source == "stored" && shown.value == value)) continue;
      add(shown.source == "stored" ? Action::Change : Action::Add, what,
          fmt::format("{} -> {}", shown.value, value), SettingStep{shown.name, value});
    }
  }

  void plan_clusters() {
    if (!wanted_.clusters) return;
    for (const api::ClusterSpec& cluster : *wanted_.clusters) {
      const std::string what = "cluster " + cluster.id;
      const api::ClusterSpec* known = cluster_there(cluster.id);
      if (known == nullptr) {
        add(Action::Add, what, fmt::format("nodes: {}", cluster.nodes.size()),
            ClusterStep{cluster});
        continue;
      }
      std::string details = differences(tree_of(*known), tree_of(cluster));
      for (const api::NodeSpec& node : cluster.nodes)
        if (has_new_key(node))
          details +=
              fmt::format("{}nodes.{}: another api_key", details.empty() ? "" : ", ", node.id);
      if (!details.empty()) add(Action::Change, what, std::move(details), ClusterStep{cluster});
    }
  }

  bool has_new_key(const api::NodeSpec& node) const {
    if (node.api_key.empty()) return false;
    const auto& known = there_.declared.api_key_fingerprints;
    const auto found = known.find(node.id);
    return found == known.end() || found->second != api::api_key_fingerprint(node.id, node.api_key);
  }

  void plan_pools() {
    if (!wanted_.pools) return;
    for (const api::DeclaredPool& pool : *wanted_.pools) {
      const std::string what = "pool " + pool.load.alias;
      const api::DeclaredPool* known = pool_there(pool.load.alias);
      if (known == nullptr) {
        add(Action::Add, what, fmt::format("{} on {}", pool.load.model, pool.cluster),
            PoolStep{.pool = pool, .from = {}});
        continue;
      }
      const Node before = without(tree_of(*known), {"force"});
      const Node after = without(tree_of(pool), {"force"});
      std::string details = differences(before, after);
      if (details.empty()) continue;
      PoolStep step{.pool = pool, .from = known->cluster};
      step.by_reload =
          differences(without(before, {"model", "batch"}), without(after, {"model", "batch"}))
              .empty();
      details += step.by_reload ? "; reloads, no request fails" : "; unloads and loads";
      add(Action::Change, what, std::move(details), std::move(step));
    }
  }

  // A cluster with a pool that stays stays too.
  void remove_clusters() {
    if (!wanted_.clusters) return;
    for (const api::ClusterSpec& cluster : there_.declared.clusters) {
      if (std::ranges::find(*wanted_.clusters, cluster.id, &api::ClusterSpec::id) !=
          wanted_.clusters->end())
        continue;
      const bool in_use = !wanted_.pools && std::ranges::find(there_.declared.pools, cluster.id,
                                                              &api::DeclaredPool::cluster) !=
                                                there_.declared.pools.end();
      if (in_use) {
        plan_.left.push_back(
            fmt::format("cluster {} (it has pools, the file says nothing of pools)", cluster.id));
      } else {
        remove("cluster " + cluster.id, ClusterStep{cluster});
      }
    }
  }

  void plan_keys() {
    if (!wanted_.keys) return;
    for (const api::KeySpec& key : *wanted_.keys) {
      const auto known = std::ranges::find_if(
          there_.keys, [&](const api::KeyShown& one) { return one.spec.name == key.name; });
      if (known == there_.keys.end()) {
        add(Action::Add, "key " + key.name, "", KeyStep{.id = {}, .spec = key});
        continue;
      }
      std::string details = differences(tree_of(known->spec), tree_of(key));
      if (!details.empty())
        add(Action::Change, "key " + key.name, std::move(details), KeyStep{known->id, key});
    }
    for (const api::KeyShown& key : there_.keys)
      if (std::ranges::find(*wanted_.keys, key.spec.name, &api::KeySpec::name) ==
          wanted_.keys->end())
        remove("key " + key.spec.name, KeyStep{key.id, key.spec});
  }

  const Wanted& wanted_;
  const There& there_;
  const bool prune_;
  Plan plan_;
};

}  // namespace

std::string Step::line() const {
  const char* verb = action == Action::Add ? "add" : action == Action::Change ? "change" : "remove";
  return details.empty() ? fmt::format("{} {}", verb, what)
                         : fmt::format("{} {} ({})", verb, what, details);
}

Result<Plan> make_plan(const Wanted& wanted, const There& there, bool prune) {
  return Planner(wanted, there, prune).make();
}

}  // namespace flotilla::config
