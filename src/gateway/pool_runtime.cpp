#include "gateway/pool_runtime.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "base/check.h"
#include "base/log.h"

namespace flotilla::gateway {
namespace {

constexpr std::chrono::seconds kStopGrace{5};

bool same_connection(const api::NodeSpec& a, const api::NodeSpec& b) {
  api::NodeSpec other = b;
  other.label = a.label;
  return a == other;
}

}  // namespace

void Waiter::give(std::shared_ptr<LaunchRuntime> launch, cluster::Why reason) {
  place = std::move(launch);
  why = reason;
  wake();
}

void Waiter::refuse(Error error) {
  refused = std::move(error);
  wake();
}

void Waiter::wake() { timer_.cancel(); }

Awaitable<void> Waiter::wait(Duration limit) {
  timer_.expires_after(limit);
  co_await timer_.async_wait(kAwait);
}

PoolRuntime::PoolRuntime(Executor executor, const Clock& clock, Random& random, Launcher& launcher,
                         Options options)
    : executor_(std::move(executor)),
      clock_(clock),
      launcher_(launcher),
      options_(std::move(options)),
      generation_(std::make_shared<const GenerationSpec>(options_.generation)),
      began_(clock_.now()),
      brain_(Alias(generation_->load.alias), options_.settings, random),
      timer_(executor_),
      boot_(random_hex(2)) {}

void PoolRuntime::pump() {
  for (auto actions = brain_.take_actions(); !actions.empty(); actions = brain_.take_actions()) {
    for (auto& action : actions) std::visit([this](auto& one) { perform(one); }, action);
  }
  arm_timer();
  if (told_ == brain_.version()) return;
  if (!leaving_.empty()) let_go();
  tell_change();
}

// Nodes come and go for as long as the pool is there: what has stopped for good leaves nothing.
void PoolRuntime::let_go() {
  std::set<NodeId> nodes;
  std::set<cluster::ReplicaIndex> there;
  const auto status = brain_.snapshot(now());  // without those that have stopped
  for (const cluster::ReplicaStatus& replica : status.replicas) {
    nodes.insert(replica.node);
    there.insert(replica.index);
  }
  std::erase_if(leaving_, [&](cluster::ReplicaIndex replica) { return !there.contains(replica); });
  std::erase_if(launches_, [&](const auto& one) { return !there.contains(one.first.replica); });
  std::erase_if(options_.nodes,
                [&](const api::NodeSpec& node) { return !nodes.contains(NodeId(node.id)); });
  std::erase_if(log_tails_, [&](const auto& one) { return !nodes.contains(one.first); });
}

void PoolRuntime::tell_change() {
  told_ = brain_.version();
  if (changed_) changed_();
}

void PoolRuntime::note_ended(const std::string& wire_id) {
  if (ending_.erase(wire_id) > 0) tell_change();
}

void PoolRuntime::note_agent_gone(const std::string& machine) {
  std::erase_if(ending_, [&](const auto& entry) { return entry.second == machine; });
}

bool PoolRuntime::runs_on(const std::string& machine) const {
  return std::ranges::any_of(ending_, [&](const auto& entry) { return entry.second == machine; }) ||
         std::ranges::any_of(launches_,
                             [&](const auto& entry) { return entry.second->machine == machine; });
}

void PoolRuntime::perform(cluster::StartReplica& action) {
  // What is left of earlier launches of this replica must not share the machine with the new one.
  std::erase_if(launches_, [&](const auto& entry) {
    if (entry.first.replica != action.launch.replica) return false;
    end_runner(*entry.second, Duration::zero());
    return true;
  });
  const std::string wire_id =
      fmt::format("g{}-r{}-l{}-{}", static_cast<unsigned>(action.generation),
                  static_cast<unsigned>(action.launch.replica), action.launch.number, boot_);
  const auto launch = put_launch(action.launch, action.node, wire_id);
  if (before_ && before_->number == static_cast<std::int64_t>(action.generation))
    launch->generation = before_;
  launcher_.start(shared_from_this(), launch);
}

void PoolRuntime::perform(cluster::StopReplica& action) {
  const auto launch = find_launch(action.launch);
  if (!launch) return;
  end_runner(*launch, launch->dropped ? Duration::zero() : Duration(kStopGrace));
  launches_.erase(action.launch);
}

void PoolRuntime::end_runner(const LaunchRuntime& launch, Duration grace) {
  if (launcher_.stop(launch, grace)) ending_[launch.wire_id] = launch.machine;
}

void PoolRuntime::perform(cluster::DropReplica& action) {
  const auto launch = find_launch(action.launch);
  if (!launch) return;
  if (!action.tickets.empty()) {
    log::warning("pool {}: replica on {} is lost with {} requests in it: {}", alias(),
                 action.node.str(), action.tickets.size(), action.reason);
  }
  launch->dropped = true;
  // Their owners see the cut and ask for another place. A copy: a cut may end its registration.
  for (Upstream* upstream : std::set(launch->upstreams)) upstream->cut();
}

void PoolRuntime::perform(cluster::Dispatch& action) {
  const auto waiter = waiters_.find(action.ticket);
  CHECK(waiter != waiters_.end());  // a ticket leaves by cancel before its waiter goes
  waiter->second.waiter->give(find_launch(action.launch), action.why);
}

void PoolRuntime::perform(cluster::Refuse& action) {
  const auto waiter = waiters_.find(action.ticket);
  CHECK(waiter != waiters_.end());
  waiter->second.waiter->refuse(std::move(action.error));
}

void PoolRuntime::put_waiter(cluster::TicketId id, Waiter* waiter, std::string request) {
  waiters_[id] = {.waiter = waiter, .request = std::move(request)};
}

std::optional<cluster::TicketId> PoolRuntime::find_ticket(const std::string& request) const {
  if (request.empty()) return std::nullopt;
  const auto found = std::ranges::find_if(
      waiters_, [&](const auto& entry) { return entry.second.request == request; });
  return found == waiters_.end() ? std::nullopt : std::optional(found->first);
}

void PoolRuntime::arm_timer() {
  const Instant due = brain_.next_deadline();
  if (due == armed_) return;
  armed_ = due;
  timer_.cancel();
  if (due == Instant::max()) return;
  timer_.expires_at(due);
  timer_.async_wait([weak = weak_from_this(), due](const boost::system::error_code& error) {
    const auto pool = weak.lock();
    if (error || !pool || pool->armed_ != due) return;
    pool->armed_ = Instant::max();
    pool->brain_.tick(pool->now());
    pool->pump();
  });
}

void PoolRuntime::add_node(const api::NodeSpec& node, cluster::Link link) {
  // One that was here before may be somewhere else, or have another key.
  const auto known = std::ranges::find(options_.nodes, node.id, &api::NodeSpec::id);
  if (known == options_.nodes.end())
    options_.nodes.push_back(node);
  else
    *known = node;
  const cluster::ReplicaIndex replica = brain_.add_replica(
      NodeId(node.id), static_cast<cluster::Generation>(generation_->number), link, now());
  replicas_[NodeId(node.id)] = replica;
  leaving_.erase(replica);  // who had its place is gone
}

void PoolRuntime::change_node(const api::NodeSpec& node) {
  const auto known = std::ranges::find(options_.nodes, node.id, &api::NodeSpec::id);
  CHECK(known != options_.nodes.end());
  *known = node;
  brain_.drain(replica_of(NodeId(node.id)), cluster::AfterDrain::Restart, false, now());
}

void PoolRuntime::follow(const std::vector<api::NodeSpec>& nodes, const LinkOf& link_of) {
  const std::vector<NodeId> before = this->nodes();
  const auto is_new = [&before](const api::NodeSpec& node) {
    return std::ranges::find(before, NodeId(node.id)) == before.end();
  };
  // Servers elsewhere come first: where a name has all other addresses at once there is always
  // somebody for those who wait. A machine's memory is given back before it is taken anew.
  for (const api::NodeSpec& node : nodes)
    if (is_new(node) && !node.has_agent()) add_node(node, link_of(node));
  for (const NodeId& node : before) {
    if (std::ranges::find(nodes, node.str(), &api::NodeSpec::id) == nodes.end())
      remove_node(node, false);
  }
  for (const api::NodeSpec& node : nodes) {
    if (!is_new(node)) {
      if (!same_connection(*node_spec(NodeId(node.id)), node)) change_node(node);
    } else if (node.has_agent()) {
      add_node(node, link_of(node));
    }
  }
  pump();
}

const GenerationSpec& PoolRuntime::find_generation(cluster::Generation number) const {
  const bool before = before_ && before_->number == static_cast<std::int64_t>(number);
  return before ? *before_ : *generation_;
}

void PoolRuntime::begin_generation(GenerationSpec next) {
  before_ = std::exchange(generation_, std::make_shared<const GenerationSpec>(std::move(next)));
  older_ = std::exchange(replicas_, {});
  retired_.clear();
}

void PoolRuntime::retire(const NodeId& node) {
  const auto old = older_.find(node);
  if (old == older_.end() || !retired_.insert(node).second) return;
  leaving_.insert(old->second);
  brain_.drain(old->second, cluster::AfterDrain::Remove, false, now());
}

bool PoolRuntime::retired(const NodeId& node) const {
  const auto old = older_.find(node);
  if (old == older_.end()) return true;
  if (!runners_gone()) return false;
  const auto status = brain_.snapshot(now());  // without those that have stopped
  return std::ranges::none_of(status.replicas, [&](const cluster::ReplicaStatus& replica) {
    // A new one may have its place.
    return replica.index == old->second &&
           static_cast<std::int64_t>(replica.generation) == before_->number;
  });
}

bool PoolRuntime::all_retired() const {
  return std::ranges::all_of(older_, [this](const auto& old) { return retired(old.first); });
}

void PoolRuntime::finish_generation() {
  before_.reset();
  older_.clear();
  retired_.clear();
}

std::vector<NodeId> PoolRuntime::abandon_generation() {
  for (const auto& [node, replica] : replicas_) {
    leaving_.insert(replica);
    brain_.drain(replica, cluster::AfterDrain::Remove, true, now());
  }
  generation_ = std::exchange(before_, nullptr);
  replicas_ = std::exchange(older_, {});
  std::vector<NodeId> missing(retired_.begin(), retired_.end());
  for (const NodeId& node : missing) replicas_.erase(node);
  retired_.clear();
  return missing;
}

std::vector<cluster::ReplicaStatus> PoolRuntime::replicas() const {
  auto all = brain_.snapshot(now()).replicas;
  std::erase_if(all, [this](const cluster::ReplicaStatus& replica) {
    return static_cast<std::int64_t>(replica.generation) != generation_->number;
  });
  return all;
}

void PoolRuntime::configure(const cluster::PoolSettings& settings) {
  options_.settings = settings;
  brain_.configure(settings, now());
  pump();
}

void PoolRuntime::remove_node(const NodeId& node, bool force) {
  const auto replica = replicas_.find(node);
  if (replica == replicas_.end()) return;
  leaving_.insert(replica->second);
  brain_.drain(replica->second, cluster::AfterDrain::Remove, force, now());
  replicas_.erase(replica);
}

cluster::ReplicaIndex PoolRuntime::replica_of(const NodeId& node) const {
  const auto replica = replicas_.find(node);
  CHECK(replica != replicas_.end());
  return replica->second;
}

const api::NodeSpec* PoolRuntime::node_spec(const NodeId& node) const {
  const auto found = std::ranges::find(options_.nodes, node.str(), &api::NodeSpec::id);
  return found == options_.nodes.end() ? nullptr : &*found;
}

const std::string& PoolRuntime::log_tail(const NodeId& node) const {
  static const std::string none;
  const auto found = log_tails_.find(node);
  return found == log_tails_.end() ? none : found->second;
}

std::vector<NodeId> PoolRuntime::nodes() const {
  std::vector<NodeId> out;
  for (const auto& [node, replica] : replicas_) out.push_back(node);
  return out;
}

std::shared_ptr<LaunchRuntime> PoolRuntime::find_launch(cluster::Launch launch) const {
  const auto found = launches_.find(launch);
  return found == launches_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<LaunchRuntime>> PoolRuntime::serving() const {
  std::vector<std::shared_ptr<LaunchRuntime>> out;
  for (const auto& [launch, runtime] : launches_) {
    if (runtime->client && !runtime->dropped) out.push_back(runtime);
  }
  return out;
}

std::vector<std::string> PoolRuntime::lacks() const {
  std::set<std::string> out;
  for (const auto& launch : serving())
    if (launch->engine) out.insert(launch->engine->lacks.begin(), launch->engine->lacks.end());
  return {out.begin(), out.end()};
}

std::vector<std::string> PoolRuntime::engines() const {
  std::set<std::string> out;
  for (const auto& launch : serving())
    if (launch->engine) out.insert(launch->engine->name.empty() ? "other" : launch->engine->name);
  return {out.begin(), out.end()};
}

bool PoolRuntime::may_have_engines() const {
  const auto has_agent = [](const api::NodeSpec& node) { return node.has_agent(); };
  const auto is_engine = [](const auto& entry) { return entry.second->engine.has_value(); };
  return !generation_->load.engine.empty() || !std::ranges::all_of(options_.nodes, has_agent) ||
         std::ranges::any_of(launches_, is_engine);
}

std::shared_ptr<const LaunchRuntime> PoolRuntime::find_live(cluster::ReplicaIndex replica) const {
  for (const auto& [launch, runtime] : std::views::reverse(launches_)) {
    if (launch.replica == replica) return runtime->dropped ? nullptr : runtime;
  }
  return nullptr;
}

std::shared_ptr<LaunchRuntime> PoolRuntime::find_wire(const std::string& wire_id) const {
  const auto found = std::ranges::find_if(
      launches_, [&](const auto& entry) { return entry.second->wire_id == wire_id; });
  return found == launches_.end() ? nullptr : found->second;
}

void PoolRuntime::leave_wire(const std::string& wire_id) {
  std::erase_if(launches_, [&](const auto& entry) { return entry.second->wire_id == wire_id; });
}

std::shared_ptr<LaunchRuntime> PoolRuntime::put_launch(cluster::Launch launch, NodeId node,
                                                       std::string wire_id) {
  leave_wire(wire_id);
  auto made = std::make_shared<LaunchRuntime>();
  made->launch = launch;
  made->node = std::move(node);
  made->wire_id = std::move(wire_id);
  made->generation = generation_;
  launches_[launch] = made;
  return made;
}

}  // namespace flotilla::gateway
