#include "gateway/fleet.h"

#include <algorithm>
#include <set>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "gateway/gather.h"
#include "platform/cpu_info.h"

// Which machines there are and what is asked of them. What they say is in fleet_events.cpp.
namespace flotilla::gateway {
namespace {

constexpr std::chrono::seconds kEndGrace{5};
constexpr std::chrono::seconds kMeet{30};  // an ssh that cannot connect says so within 10
constexpr std::chrono::milliseconds kLookAgain{20};
constexpr std::chrono::milliseconds kLeaveLook{200};

api::NodeSpec this_machine() {
  api::NodeSpec node;
  node.id = "local";
  return node;
}

// CUDA_VISIBLE_DEVICES and its like; what the node's env sets itself stays.
void show_devices(const std::vector<int>& devices, std::map<std::string, std::string>& env) {
  if (devices.empty()) return;
  const std::string list = fmt::format("{}", fmt::join(devices, ","));
  env.emplace("CUDA_VISIBLE_DEVICES", list);
  env.emplace("HIP_VISIBLE_DEVICES", list);
}

std::map<std::string, std::string> runner_env(const Knobs& knobs, const api::NodeSpec& node) {
  std::map<std::string, std::string> env = knobs.for_runners;
  for (const auto& [name, value] : node.env) env[name] = value;
  show_devices(node.devices, env);
  return env;
}

api::EngineValues engine_values(const Knobs& knobs, const GenerationSpec& pool, int threads) {
  api::EngineValues values;
  values.alias = pool.load.alias;
  values.model = pool.load.model;
  values.batch_size = pool.width;
  values.prefill_batch = std::clamp(knobs.runner_prefill_batch, 1, pool.width);
  values.context = pool.load.context;
  values.window = pool.load.window != 0 ? pool.load.window : pool.load.context * pool.width;
  values.threads = threads;
  return values;
}

Awaitable<bool> close_link(std::shared_ptr<Machine> machine, nodes::NodeLink::Runners runners) {
  co_await machine->link->close(runners, kEndGrace);
  co_return true;
}

}  // namespace

Fleet::Fleet(Options options) : options_(std::move(options)) {
  for_machines_ = {.executor = options_.executor,
                   .clock = options_.clock,
                   .random = options_.random,
                   .knobs = options_.knobs,
                   .state_dir = options_.state_dir,
                   .state_id = options_.state_id,
                   .on_link = [this](Machine& machine,
                                     const nodes::LinkStatus& status) { on_link(machine, status); },
                   .on_agent = [this](Machine& machine,
                                      const api::AgentEvent& event) { on_agent(machine, event); }};
}

Fleet::~Fleet() = default;

void Fleet::start() { add_machine(this_machine()); }

void Fleet::add_machine(const api::NodeSpec& node) {
  const std::string key = machine_key(node);
  auto machine = make_machine(for_machines_, node);
  if (!machine) {
    log::error("node {}: {}", node.id, machine.error().message);
    unlinked_[key] = machine.error().message;
    return;
  }
  unlinked_.erase(key);
  machines_[key] = *machine;
  (*machine)->link->start();
}

void Fleet::declare(const std::vector<api::NodeSpec>& nodes) {
  std::set<std::string> wanted{"local"};
  for (const api::NodeSpec& node : nodes) {
    const std::string key = machine_key(node);
    if (key.empty()) continue;
    wanted.insert(key);
    const auto known = machines_.find(key);
    if (known == machines_.end())
      add_machine(node);
    else
      known->second->leaving = false;
  }
  for (const auto& [key, machine] : machines_) {
    if (wanted.contains(key) || machine->leaving) continue;
    machine->leaving = true;
    boost::asio::co_spawn(options_.executor, leave(machine), boost::asio::detached);
  }
}

bool Fleet::is_used(const Machine& machine) const {
  return std::ranges::any_of(pools_, [&](const auto& pool) { return pool->runs_on(machine.key); });
}

// Its replicas drain first.
Awaitable<void> Fleet::leave(std::shared_ptr<Machine> machine) {
  boost::asio::steady_timer timer(options_.executor);
  while (machine->leaving && machine->is_up() && is_used(*machine)) {
    timer.expires_after(kLeaveLook);
    co_await timer.async_wait(kAwait);
  }
  if (!machine->leaving) co_return;  // declared again
  log::info("node {}: no cluster names {} any more", machine->name, machine->host);
  machines_.erase(machine->key);
  co_await close_link(machine, nodes::NodeLink::Runners::End);
  for (const auto& pool : std::vector(pools_)) pool->note_agent_gone(machine->key);
  tell_change();
}

Awaitable<void> Fleet::close(nodes::NodeLink::Runners runners) {
  std::vector<Awaitable<bool>> works;
  for (const auto& [key, machine] : machines_) works.push_back(close_link(machine, runners));
  co_await gather(options_.executor, std::move(works));
}

void Fleet::attach(const std::shared_ptr<PoolRuntime>& pool) {
  pools_.push_back(pool);
  pool->on_change([this] { tell_change(); });
}

void Fleet::detach(const std::shared_ptr<PoolRuntime>& pool) {
  std::erase(pools_, pool);
  tell_change();
}

void Fleet::tell_change() {
  if (changed_) changed_();
}

std::shared_ptr<Machine> Fleet::find_machine(const api::NodeSpec& node) const {
  const auto found = machines_.find(machine_key(node));
  return found == machines_.end() ? nullptr : found->second;
}

std::string Fleet::place_of(const api::NodeSpec& node) const {
  const auto machine = find_machine(node);
  const api::AgentHello* hello = machine ? machine->link->hello() : nullptr;
  return hello != nullptr && !hello->machine_id.empty() ? hello->machine_id : machine_key(node);
}

cluster::Link Fleet::link_of(const api::NodeSpec& node) const {
  if (!node.has_agent()) return cluster::Link::Up;
  const auto machine = find_machine(node);
  if (!machine) return cluster::Link::Away;
  switch (machine->link->status().state) {
    case nodes::LinkState::Up: return cluster::Link::Up;
    case nodes::LinkState::Connecting:
      return machine->link->status().reason.empty() ? cluster::Link::Connecting
                                                    : cluster::Link::Away;
    case nodes::LinkState::Down: return cluster::Link::Away;
  }
  return cluster::Link::Away;
}

api::NodeStatus Fleet::status_of(const api::NodeSpec& node) const {
  api::NodeStatus out;
  out.id = node.id;
  out.label = node.label;
  out.transport = node.transport;
  out.host = host_of(node);
  out.state = "up";
  if (!node.has_agent()) return out;
  const auto machine = find_machine(node);
  if (!machine) {
    const auto why = unlinked_.find(machine_key(node));
    out.state = "down";
    out.reason = why == unlinked_.end() ? "it is not linked to" : why->second;
    return out;
  }
  const nodes::LinkStatus& link = machine->link->status();
  out.reason = link.reason;
  switch (link_of(node)) {
    case cluster::Link::Up: break;
    case cluster::Link::Connecting: out.state = "connecting"; break;
    case cluster::Link::Away: out.state = link.other_version ? "down (version)" : "down"; break;
  }
  if (const api::AgentHello* hello = machine->link->hello()) {
    out.version = hello->version;
    out.platform = hello->platform;
    out.outdated = hello->version != options_.version;
    out.round_trip_ms = link.round_trip_ms;
  }
  return out;
}

std::string Fleet::host_of(const api::NodeSpec& node) const {
  if (const auto machine = find_machine(node)) return machine->host;
  if (node.has_agent()) return node.host;
  const auto endpoint = http::parse_url(node.url);
  if (!endpoint) return node.url;
  return fmt::format("{}:{}", node.address.empty() ? endpoint->host : node.address, endpoint->port);
}

Awaitable<void> Fleet::meet(std::vector<api::NodeSpec> nodes) {
  boost::asio::steady_timer timer(options_.executor);
  const Instant until = options_.clock->now() + kMeet;
  const auto undecided = [this](const api::NodeSpec& node) {
    return link_of(node) == cluster::Link::Connecting;
  };
  while (std::ranges::any_of(nodes, undecided) && options_.clock->now() < until) {
    timer.expires_after(kLookAgain);
    co_await timer.async_wait(kAwait);
  }
}

int Fleet::replicas_on(const std::string& machine) const {
  int count = 0;
  for (const auto& pool : pools_) {
    for (const NodeId& node : pool->nodes()) {
      const api::NodeSpec* spec = pool->node_spec(node);
      if (spec != nullptr && machine_key(*spec) == machine) ++count;
    }
  }
  return count;
}

api::RunnerSpec Fleet::runner_spec(const GenerationSpec& pool, const api::NodeSpec& node,
                                   int replicas) const {
  api::RunnerSpec spec;
  spec.model = pool.load.model;
  spec.synthetic = pool.load.model == api::kSyntheticModel;
  spec.models_dir = node.models_dir;
  spec.width = pool.width;
  spec.context = pool.load.context;
  spec.window = pool.load.window;
  spec.threads = pool.load.threads != 0 ? pool.load.threads : node.threads;
  if (spec.threads == 0) {
    const auto machine = find_machine(node);
    const api::AgentHello* hello = machine ? machine->link->hello() : nullptr;
    const int cores = hello != nullptr && hello->cores > 0 ? hello->cores
                      : node.is_local()                    ? platform::usable_cores()
                                                           : 0;
    if (cores > 0) spec.threads = std::max(1, cores / std::max(1, replicas));
  }
  spec.kv_type = pool.load.kv_type;
  spec.gpu_layers = pool.load.gpu_layers;
  spec.chat_template = pool.load.chat_template;
  if (pool.load.speculate != "off") spec.speculate = pool.load.speculate;
  spec.alias = pool.load.alias;
  spec.node = node.id;
  spec.env = runner_env(*options_.knobs, node);
  spec.engine = engine_spec(pool, node, spec.threads);
  return spec;
}

// What must be the same for a runner that an agent still holds to be taken as this replica's. The
// state id is compared by the agent.
std::string Fleet::held_text(const GenerationSpec& pool, const api::NodeSpec& node) const {
  std::string text = fmt::format("{} {} {} {} {} {}", pool.number, node.id, pool.width,
                                 node.threads, node.models_dir, api::to_json(pool.load));
  for (const auto& [name, value] : runner_env(*options_.knobs, node))
    text += fmt::format(" {}={}", name, value);
  if (const auto engine = engine_spec(pool, node, node.threads)) {
    text += fmt::format(" {} {}", engine->cwd, fmt::join(engine->command, " "));
    for (const auto& [name, value] : engine->env) text += fmt::format(" {}={}", name, value);
  }
  return text;
}

std::string_view Fleet::engine_for_folders(const api::NodeSpec& node) const {
  const auto machine = find_machine(node);
  const api::AgentHello* hello = machine ? machine->link->hello() : nullptr;
  return api::engine_for_folders(hello != nullptr ? hello->platform : platform::platform_name());
}

// What the load names, else what its model takes if it is a folder; nullopt: our runner alone.
std::optional<api::EngineSpec> Fleet::engine_spec(const GenerationSpec& pool,
                                                  const api::NodeSpec& node, int threads) const {
  const bool asked = !pool.load.engine.empty();
  const api::EngineTemplate* engine =
      api::find_engine(options_.engines, asked ? pool.load.engine : engine_for_folders(node));
  if (engine == nullptr) return std::nullopt;
  api::EngineSpec out = api::fill_template(*engine, engine_values(*options_.knobs, pool, threads));
  out.folders_only = !asked;
  return out;
}

// An agent of another version may not know engines, and would start a runner in their place.
Result<void> Fleet::may_start(const GenerationSpec& pool, const Machine* machine) const {
  const std::string& engine = pool.load.engine;
  if (engine.empty()) return {};
  if (api::find_engine(options_.engines, engine) == nullptr) {
    return fail(Code::Unprocessable, fmt::format("there is no engine \"{}\"; {}", engine,
                                                 api::how_to_configure(engine)));
  }
  const api::AgentHello* hello = machine != nullptr ? machine->link->hello() : nullptr;
  if (hello == nullptr || hello->version == options_.version) return {};
  return fail(Code::Unavailable,
              fmt::format("its flotilla is {}, this one {}; engines need the same version: "
                          "flotilla node bootstrap {}",
                          hello->version, options_.version, machine->name));
}

void Fleet::start(const std::shared_ptr<PoolRuntime>& pool,
                  const std::shared_ptr<LaunchRuntime>& launch) {
  const api::NodeSpec* node = pool->node_spec(launch->node);
  if (node == nullptr)
    return;  // taken out of the cluster a moment ago; its replica is being removed
  if (!node->has_agent()) return serve_http_node(pool, launch, *node);
  launch->machine = machine_key(*node);
  const auto machine = find_machine(*node);
  std::string text = held_text(*launch->generation, *node);
  // The agent tells again what a runner that it has already said.
  if (machine) {
    if (auto held = machine->loading.extract(text)) launch->wire_id = held.mapped();
  }
  api::StartReplica start{
      .replica = launch->wire_id,
      .generation = std::move(text),
      .spec = runner_spec(*launch->generation, *node, replicas_on(launch->machine))};
  log::info("pool {}: starting a replica on {}", pool->alias(), node->id);
  Result<void> sent = may_start(*launch->generation, machine.get());
  if (sent && !machine) sent = fail(Code::Unavailable, "its machine is not linked to");
  if (sent) sent = machine->link->start_replica(start);
  if (!sent) {
    // The brain is told from the event loop: it is in the middle of handing out actions.
    boost::asio::post(options_.executor,
                      [pool, launch = launch->launch, reason = sent.error().message] {
                        pool->brain().on_start_failed(launch, reason, pool->now());
                        pool->pump();
                      });
  }
}

bool Fleet::stop(const LaunchRuntime& launch, Duration grace) {
  const auto found = machines_.find(launch.machine);
  if (found == machines_.end()) return false;
  Machine& machine = *found->second;
  machine.sockets.erase(launch.wire_id);
  // Where the link is down the agent's own grace or the next hello ends it.
  return machine.link
      ->stop_replica(
          {.replica = launch.wire_id,
           .grace_ms = std::chrono::duration_cast<std::chrono::milliseconds>(grace).count()})
      .has_value();
}

Fleet::Found Fleet::find(const std::string& wire_id) const {
  for (const auto& pool : pools_) {
    if (auto launch = pool->find_wire(wire_id)) return {pool, launch};
  }
  return {};
}

}  // namespace flotilla::gateway
