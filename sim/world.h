#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "cluster/pool.h"
#include "sim/agenda.h"
#include "sim/checkers.h"
#include "sim/fake_replica.h"
#include "sim/scenario.h"

namespace flotilla::sim {

// One request with its owner's memory, as the gateway's coroutine would hold it.
struct Request {
  cluster::Ticket ticket;
  int prompt_tokens = 0;
  int output_tokens = 0;
  bool poison = false;
  bool named = false;     // the runner's breadcrumb tells
  bool any_byte = false;  // something was sent to the client
  Duration patience{};    // the client goes away after it; 0: never
  Duration timeout{};     // its own; 0: none
  std::uint32_t attempt = 0;
  std::optional<cluster::Launch> launch;
};

// The gateway's body and the machines around one Pool: does its actions, brings it its news, with
// delays, losses and reorderings. Everything comes from the scenario's seed.
class World : public RunnerOwner {
 public:
  World(const Scenario& scenario, Agenda& agenda, Random& random);

  // for the workload
  void submit(Request request);
  // for faults and edits
  std::size_t node_count() const { return nodes_.size(); }
  FakeNode& node(std::size_t i) { return *nodes_[i]; }
  void kill(std::size_t node, bool own_fault);
  void hang(std::size_t node);
  void cut(std::size_t node, Duration time, bool reboot);
  void add_node();
  void remove_node(std::size_t node);
  void reload();
  void admin(std::size_t node, cluster::AfterDrain after, Duration until_resume);
  void calm();  // no fault is left

  const cluster::Pool& pool() const { return pool_; }
  Checkers& checkers() { return checkers_; }
  // Once a second. `late`: the process stood still, so what was due meanwhile is not done yet.
  void view(bool late);
  const std::deque<std::string>& trace() const { return trace_; }

 private:
  struct Member {  // a replica of the pool
    std::size_t node = 0;
    cluster::Generation generation{};
    std::uint32_t launch = 0;  // last one the body heard of
    std::uint32_t before = 0;  // and of who had its place before
    bool removed = false;
  };

  void on_job_first_byte(const Job& job, int node) override;
  void on_job_done(const Job& job, int node) override;
  void on_job_poison(const Job& job, int node, cluster::ReplicaIndex replica) override;

  void add_replica(std::size_t node, cluster::Generation generation);
  void drain(std::size_t member, cluster::AfterDrain after);
  void act();
  void arm();
  void start(const cluster::StartReplica& start);
  void load(const std::shared_ptr<FakeRunner>& runner, std::size_t node, int part);
  void become_ready(const std::shared_ptr<FakeRunner>& runner, std::size_t node);
  void beat(const std::shared_ptr<FakeRunner>& runner, std::size_t node);
  // `killer`: the request that did it; 0: none.
  void die(const std::shared_ptr<FakeRunner>& runner, std::size_t node, cluster::Exit exit,
           cluster::TicketId killer = {});
  void stop(cluster::Launch launch);
  void handshake(std::size_t node);

  void answer(cluster::TicketId id, const cluster::Admission& admission, bool again);
  void send(cluster::TicketId id, cluster::Launch launch, bool again);
  void fail(cluster::TicketId id, std::uint32_t attempt);
  void end(cluster::TicketId id, cluster::Outcome outcome, const cluster::Usage& usage);
  cluster::ReplicaInfo info() const;
  int places() const { return scenario_.width + scenario_.ahead; }

  // A message over the node's link: late while it is cut, lost once the pool has given it up.
  void over_link(std::size_t node, Duration delay, Agenda::Deed deed);
  void owner_hears(int node, const Job& job, Agenda::Deed deed);
  Duration jitter(int ms_max) {
    return std::chrono::microseconds(random_.below(1000 * static_cast<std::uint64_t>(ms_max) + 1));
  }
  template <class... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    if (scenario_.trace) remember(fmt::format(format, std::forward<Args>(args)...));
  }
  void remember(const std::string& line);

  const Scenario& scenario_;
  Agenda& agenda_;
  Random& random_;
  Random pool_random_;
  Checkers checkers_;
  cluster::Pool pool_;
  std::vector<std::unique_ptr<FakeNode>> nodes_;
  std::vector<Member> members_;  // by ReplicaIndex
  std::unordered_map<cluster::TicketId, Request> requests_;
  cluster::Generation generation_{1};
  bool reloading_ = false;
  Instant armed_ = Instant::max();
  std::uint64_t next_ticket_ = 0;
  std::uint64_t viewed_version_ = 0;
  int viewed_replicas_ = -1;
  int since_view_ = 0;  // seconds
  std::deque<std::string> trace_;
};

}  // namespace flotilla::sim
