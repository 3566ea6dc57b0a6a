#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "api/admin.h"
#include "api/agent_frames.h"
#include "api/engine_request.h"
#include "api/runner_protocol.h"
#include "base/clock.h"
#include "base/random.h"
#include "cluster/pool.h"
#include "cluster/status.h"
#include "http/client.h"

namespace flotilla::gateway {

class PoolRuntime;

// A request's connection to a replica, from its opening on, for whoever must end it from outside:
// the client's going away, or the loss of the replica.
class Upstream {
 public:
  http::Cut* opening() { return &opening_; }
  void set_stream(http::ClientStream* stream) { stream_ = stream; }
  // Whoever waits for it is woken with an error.
  void cut() {
    opening_.now();
    if (stream_ != nullptr) stream_->close();
  }

 private:
  http::Cut opening_;
  http::ClientStream* stream_ = nullptr;
};

// One load of a pool: what the replicas of that generation are started with.
struct GenerationSpec {
  api::LoadSpec load;  // alias and model resolved
  std::int64_t number = 0;
  int width = 1;
};

// One launch of a replica as requests see it: where to connect, and which answers come from it.
struct LaunchRuntime {
  cluster::Launch launch;
  NodeId node;
  std::shared_ptr<const GenerationSpec> generation;
  std::string wire_id;                       // its name at the node's agent
  std::string machine;                       // that agent's (machine_key); empty for an http node
  std::unique_ptr<http::Client> client;      // set once it is ready
  std::optional<api::ForeignEngine> engine;  // not our runner
  Instant heard{};                           // of an engine: its last byte of an answer
  int not_found = 0;                         // of an engine: 404s since its last answer
  bool doubted = false;                      // so it is asked whether it still answers
  std::set<Upstream*> upstreams;             // cut when the launch is dropped
  api::RunnerEvent told;                     // what its runner last said of itself
  bool dropped = false;                      // serves no more; kept until its runner has ended
};

// Makes an upstream one of a launch's, for as long as it lives.
class UpstreamScope {
 public:
  UpstreamScope(LaunchRuntime& launch, Upstream& upstream) : launch_(launch), upstream_(upstream) {
    launch_.upstreams.insert(&upstream_);
  }
  UpstreamScope(const UpstreamScope&) = delete;
  UpstreamScope& operator=(const UpstreamScope&) = delete;
  ~UpstreamScope() {
    upstream_.set_stream(nullptr);
    launch_.upstreams.erase(&upstream_);
  }

 private:
  LaunchRuntime& launch_;
  Upstream& upstream_;
};

// How a replica's runner is started and stopped; the nodes' side does it.
class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual void start(const std::shared_ptr<PoolRuntime>& pool,
                     const std::shared_ptr<LaunchRuntime>& launch) = 0;
  // `grace` until it is killed. false: nobody is there who could say that it has ended.
  virtual bool stop(const LaunchRuntime& launch, Duration grace) = 0;
};

// A queued request: woken with its place, or with the reason why there is none.
class Waiter {
 public:
  explicit Waiter(const Executor& executor) : timer_(executor) {}

  void give(std::shared_ptr<LaunchRuntime> place, cluster::Why why);
  void refuse(Error error);
  void wake();
  // Sleeps until something was given, wake() or `limit`.
  Awaitable<void> wait(Duration limit);

  std::shared_ptr<LaunchRuntime> place;
  cluster::Why why{};  // that place
  std::optional<Error> refused;

 private:
  boost::asio::steady_timer timer_;
};

// One declared pool at work: the brain, and the hands that do what it says. I/O thread only.
class PoolRuntime : public std::enable_shared_from_this<PoolRuntime> {
 public:
  struct Options {
    std::string cluster;
    GenerationSpec generation;
    std::int64_t created_unix_s = 0;
    cluster::PoolSettings settings;
    std::vector<api::NodeSpec> nodes;
  };
  PoolRuntime(Executor executor, const Clock& clock, Random& random, Launcher& launcher,
              Options options);

  const Options& options() const { return options_; }
  const std::string& alias() const { return generation_->load.alias; }
  // What new replicas are started with; and one that still serves, or the newest.
  const GenerationSpec& generation() const { return *generation_; }
  const GenerationSpec& find_generation(cluster::Generation number) const;
  Instant now() const { return clock_.now(); }
  Instant began() const { return began_; }

  // The brain, for events and tickets; pump() must follow each call that takes `now`.
  cluster::Pool& brain() { return brain_; }
  const cluster::Pool& brain() const { return brain_; }
  // Does the brain's actions and arms its timer.
  void pump();

  void add_node(const api::NodeSpec& node, cluster::Link link);
  // Its replica drains; once that has stopped nothing of the node is kept.
  void remove_node(const NodeId& node, bool force);
  // Set otherwise: its replica drains and starts anew.
  void change_node(const api::NodeSpec& node);
  // From here on these are its nodes: one that is gone drains, a new one gets a replica, one that
  // is set otherwise starts its replica anew.
  using LinkOf = std::function<cluster::Link(const api::NodeSpec&)>;
  void follow(const std::vector<api::NodeSpec>& nodes, const LinkOf& link_of);
  cluster::ReplicaIndex replica_of(const NodeId& node) const;
  const api::NodeSpec* node_spec(const NodeId& node) const;
  std::vector<NodeId> nodes() const;  // that have a replica of this pool

  // A reload. From here on add_node() makes replicas of `next`; those that are there go on serving
  // until retire(). It ends with finish or, no new replica having come up, with abandon.
  void begin_generation(GenerationSpec next);
  void retire(const NodeId& node);  // drained, then stopped; pump() must follow
  bool retired(const NodeId& node) const;
  bool all_retired() const;
  void finish_generation();
  // The new replicas end, the old generation is the pool's again. Returns the nodes whose old
  // replica was retired already: add_node() brings them back.
  std::vector<NodeId> abandon_generation();
  // Of the newest generation.
  std::vector<cluster::ReplicaStatus> replicas() const;
  void configure(const cluster::PoolSettings& settings);
  // Called after each change that status shows.
  void on_change(std::function<void()> callback) { changed_ = std::move(callback); }

  // The last words of a node's runner before it last ended.
  void note_log_tail(const NodeId& node, std::string tail) { log_tails_[node] = std::move(tail); }
  const std::string& log_tail(const NodeId& node) const;

  // What the latest ready runner said of the model.
  void note_model(const api::RunnerInfo& info) { model_ = info; }
  const std::optional<api::RunnerInfo>& model() const { return model_; }

  std::shared_ptr<LaunchRuntime> find_launch(cluster::Launch launch) const;
  // Those that serve, in no order of merit.
  std::vector<std::shared_ptr<LaunchRuntime>> serving() const;
  // What the engines among them lack, together; and what those engines are called.
  std::vector<std::string> lacks() const;
  std::vector<std::string> engines() const;
  // Whether a request may get to such an engine: there is one, or will be by what was declared.
  bool may_have_engines() const;
  // The latest launch of a replica, unless it was dropped.
  std::shared_ptr<const LaunchRuntime> find_live(cluster::ReplicaIndex replica) const;
  std::shared_ptr<LaunchRuntime> find_wire(const std::string& wire_id) const;
  // An agent still has what an earlier launch started: whoever starts that replica takes it over.
  void leave_wire(const std::string& wire_id);
  // Its runner has ended.
  void erase_launch(cluster::Launch launch) { launches_.erase(launch); }
  // A launch that is there without our having started it (adopted from an agent).
  std::shared_ptr<LaunchRuntime> put_launch(cluster::Launch launch, NodeId node,
                                            std::string wire_id);

  // A queued ticket's sleeper, until it is taken out.
  // `request`: its id, by which a runner's breadcrumb names it.
  void put_waiter(cluster::TicketId id, Waiter* waiter, std::string request);
  std::optional<cluster::TicketId> find_ticket(const std::string& request) const;
  void take_waiter(cluster::TicketId id) { waiters_.erase(id); }

  // The brain has stopped every replica; no runner of them is left at an agent.
  bool stopped() const { return brain_.stopped(); }
  bool runners_gone() const { return ending_.empty(); }
  void note_ended(const std::string& wire_id);
  void note_agent_gone(const std::string& machine);
  // A runner of a replica is on that machine, ending ones included.
  bool runs_on(const std::string& machine) const;

 private:
  void perform(cluster::StartReplica& action);
  void perform(cluster::StopReplica& action);
  void perform(cluster::DropReplica& action);
  void perform(cluster::Dispatch& action);
  void perform(cluster::Refuse& action);
  void end_runner(const LaunchRuntime& launch, Duration grace);
  void arm_timer();
  void tell_change();
  void let_go();

  Executor executor_;
  const Clock& clock_;
  Launcher& launcher_;
  Options options_;
  std::shared_ptr<const GenerationSpec> generation_;  // the newest
  std::shared_ptr<const GenerationSpec> before_;      // while a reload is under way
  const Instant began_;
  cluster::Pool brain_;
  std::map<cluster::Launch, std::shared_ptr<LaunchRuntime>> launches_;
  std::map<NodeId, cluster::ReplicaIndex> replicas_;  // of the newest generation
  std::map<NodeId, cluster::ReplicaIndex> older_;     // of the one before
  std::set<NodeId> retired_;                          // of those, told to end
  std::set<cluster::ReplicaIndex> leaving_;           // told to end, and perhaps not gone yet
  struct Waiting {
    Waiter* waiter = nullptr;
    std::string request;
  };
  std::unordered_map<cluster::TicketId, Waiting> waiters_;
  boost::asio::steady_timer timer_;
  Instant armed_ = Instant::max();
  std::map<std::string, std::string> ending_;  // runners told to stop: wire id -> machine
  std::optional<api::RunnerInfo> model_;
  std::map<NodeId, std::string> log_tails_;
  std::string boot_;  // tells this process's launches from an earlier one's
  std::function<void()> changed_;
  std::uint64_t told_ = 0;  // the brain's version that changed_ was told of
};

}  // namespace flotilla::gateway
