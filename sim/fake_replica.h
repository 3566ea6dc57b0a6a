#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cluster/pool.h"
#include "sim/agenda.h"

namespace flotilla::sim {

// One request inside a runner.
struct Job {
  cluster::TicketId ticket{};
  std::uint32_t attempt = 0;  // of its owner: news of an older one is ignored
  Duration prefill{};
  Duration decode{};
  bool poison = false;
  bool running = false;
};

// Where a runner's news goes.
class RunnerOwner {
 public:
  virtual ~RunnerOwner() = default;
  virtual void on_job_first_byte(const Job& job, int node) = 0;
  virtual void on_job_done(const Job& job, int node) = 0;
  virtual void on_job_poison(const Job& job, int node, cluster::ReplicaIndex replica) = 0;
};

// A runner as the gateway sees it: `width` jobs run, the others wait; a job prefills, sends its
// first byte, decodes. It can hang (nothing moves, nothing is said) or be dead.
class FakeRunner : public std::enable_shared_from_this<FakeRunner> {
 public:
  FakeRunner(Agenda& agenda, RunnerOwner& owner, cluster::Launch launch, int node, int width)
      : agenda_(agenda), owner_(owner), launch(launch), node_(node), width_(width) {}

  void accept(Job job, double slowness);
  void remove(cluster::TicketId ticket);
  cluster::Heartbeat beat();
  const std::vector<Job>& jobs() const { return jobs_; }

 private:
  void start_next();
  Job* find(cluster::TicketId ticket, std::uint32_t attempt);

  Agenda& agenda_;
  RunnerOwner& owner_;

 public:
  cluster::Launch launch;
  bool ready = false;
  bool hung = false;
  bool dead = false;

 private:
  int node_;
  int width_;
  int running_ = 0;
  double slowness_ = 1;
  std::uint64_t step_ = 0;
  std::vector<Job> jobs_;
};

// A machine: its link, its mood, and the runners that its agent holds, by replica.
struct FakeNode {
  NodeId id;
  bool link = true;
  bool told_away = false;  // the pool knows that the link is cut
  std::uint32_t cuts = 0;
  double slowness = 1;
  bool fail_fast = false;
  int load_failures = 0;  // attempts to come that fail
  int load_stalls = 0;
  std::vector<std::pair<cluster::ReplicaIndex, std::shared_ptr<FakeRunner>>> runners;

  std::shared_ptr<FakeRunner> find(cluster::ReplicaIndex replica) const {
    for (const auto& [index, runner] : runners) {
      if (index == replica) return runner;
    }
    return nullptr;
  }
};

}  // namespace flotilla::sim
