#include "gateway/model_inventory.h"

#include <map>

#include "gateway/gather.h"

namespace flotilla::gateway {
namespace {

constexpr std::chrono::seconds kAskAgent{30};

Awaitable<api::NodeModels> models_of(std::shared_ptr<Machine> machine, api::NodeSpec node) {
  api::NodeModels out;
  out.node = node.id;
  out.models_dir = node.models_dir;
  if (node.models_dir.empty()) {
    out.error = "no models folder is set (models_dir of the cluster or the node)";
    co_return out;
  }
  if (!machine) {
    out.error = "it is not linked to";
    co_return out;
  }
  auto list = co_await machine->link->list_models(node.models_dir, kAskAgent);
  if (!list) {
    out.error = list.error().message;
    co_return out;
  }
  out.error = std::move(list->error);
  out.truncated = list->truncated;
  out.models = std::move(list->models);
  co_return out;
}

}  // namespace

Awaitable<api::ClusterModels> models_in(Control& control, Executor executor,
                                        api::ClusterSpec cluster) {
  std::vector<api::NodeSpec> nodes = control.nodes_of(cluster);
  // An engine elsewhere holds its model already.
  std::erase_if(nodes, [](const api::NodeSpec& node) { return !node.has_agent(); });
  co_await control.nodes().meet(nodes);
  std::map<std::pair<std::string, std::string>, std::size_t> asked;
  std::vector<Awaitable<api::NodeModels>> works;
  for (const api::NodeSpec& node : nodes) {
    if (!asked.try_emplace({machine_key(node), node.models_dir}, works.size()).second) continue;
    works.push_back(models_of(control.nodes().find_machine(node), node));
  }
  const auto answers = co_await gather(executor, std::move(works));
  api::ClusterModels out;
  out.cluster = cluster.id;
  for (const api::NodeSpec& node : nodes) {
    out.nodes.push_back(answers[asked.at({machine_key(node), node.models_dir})]);
    out.nodes.back().node = node.id;
  }
  co_return out;
}

}  // namespace flotilla::gateway
