#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gateway/control.h"
#include "gateway/gather.h"

// What the nodes say to a load, before it is one.
namespace flotilla::gateway {
namespace {

constexpr std::chrono::seconds kAskAgent{30};

// The nodes of one machine have one answer, if they look in one folder and at the same devices.
struct Question {
  std::string machine;
  std::string models_dir;
  std::vector<int> devices;
  auto operator<=>(const Question&) const = default;
};

bool share_a_device(const api::NodeSpec& one, const api::NodeSpec& other) {
  return std::ranges::any_of(one.devices, [&](int device) {
    return std::ranges::find(other.devices, device) != other.devices.end();
  });
}

Awaitable<api::NodePreflight> ask(std::shared_ptr<Machine> machine, api::Preflight question) {
  api::NodePreflight out;
  if (!machine) {
    out.error = "it is not linked to";
    co_return out;
  }
  const nodes::LinkStatus link = machine->link->status();
  if (link.state != nodes::LinkState::Up) {
    out.error = link.reason.empty() ? "it does not answer yet" : link.reason;
    co_return out;
  }
  auto answer = co_await machine->link->preflight(std::move(question), kAskAgent);
  if (answer)
    out.answer = std::move(*answer);
  else
    out.error = answer.error().message;
  co_return out;
}

}  // namespace

Awaitable<std::vector<api::NodePreflight>> Control::ask_nodes(api::ClusterSpec cluster,
                                                              GenerationSpec generation) {
  std::vector<api::NodeSpec> nodes = nodes_of(cluster);
  std::erase_if(nodes, [](const api::NodeSpec& node) { return !node.has_agent(); });
  co_await fleet_.meet(nodes);
  std::map<std::string, int> sharing;
  for (const api::NodeSpec& node : nodes) ++sharing[fleet_.place_of(node)];

  // A file can differ from another only where there are several.
  std::set<Question> places;
  for (const api::NodeSpec& node : nodes) places.insert({machine_key(node), node.models_dir, {}});
  std::map<Question, std::size_t> asked;
  std::vector<Awaitable<api::NodePreflight>> works;
  for (const api::NodeSpec& node : nodes) {
    const Question key{machine_key(node), node.models_dir, node.devices};
    if (!asked.try_emplace(key, works.size()).second) continue;
    api::Preflight question;
    question.spec = fleet_.runner_spec(generation, node, sharing[fleet_.place_of(node)]);
    question.hash = places.size() > 1;
    works.push_back(ask(fleet_.find_machine(node), std::move(question)));
  }
  const auto answers = co_await gather(options_.executor, std::move(works));

  std::vector<api::NodePreflight> out;
  for (const api::NodeSpec& node : nodes) {
    api::NodePreflight& line =
        out.emplace_back(answers[asked.at({machine_key(node), node.models_dir, node.devices})]);
    const api::NodeStatus status = fleet_.status_of(node);
    line.node = node.id;
    line.sharing = sharing[fleet_.place_of(node)];
    if (line.answer.on_devices) {
      const std::string place = fleet_.place_of(node);
      line.sharing = static_cast<int>(std::ranges::count_if(nodes, [&](const api::NodeSpec& other) {
        return fleet_.place_of(other) == place && share_a_device(other, node);
      }));
    }
    line.version = status.version;
    line.outdated = status.outdated;
    const std::string_view engine = fleet_.engine_for_folders(node);
    if (line.answer.folder && generation.load.engine.empty() &&
        api::find_engine(fleet_.engines(), engine) == nullptr) {
      line.unserved = fmt::format(
          "{} is a model folder (config.json and *.safetensors), which "
          "engine {} serves here, and that is not configured; {}",
          generation.load.model, engine, api::how_to_configure(engine));
    }
  }
  api::compare_nodes(out, cluster.id, generation.load.model);
  co_return out;
}

}  // namespace flotilla::gateway
