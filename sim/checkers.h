#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "cluster/pool.h"
#include "sim/scenario.h"

namespace flotilla::sim {

// Watches a history from outside, with its own books, and names the first promise that broke.
class Checkers {
 public:
  explicit Checkers(const Scenario& scenario) : scenario_(scenario) {}

  // replicas
  void on_added(cluster::ReplicaIndex replica, cluster::Generation generation);
  void on_start(const cluster::StartReplica& start, Instant now);
  void on_ready(cluster::Launch launch, int places, Instant now);
  void on_adopted(cluster::Launch launch, int places, Instant now);
  void on_stop(cluster::Launch launch, Instant now);
  void on_drop(const cluster::DropReplica& drop, Instant now);
  // The attempt, or the ready runner, failed.
  void on_failure(cluster::Launch launch, Instant now);
  void on_node(cluster::ReplicaIndex replica, bool up, Instant now);
  // The pool has been told that its node is back: it must be under way.
  void on_came_back(cluster::ReplicaIndex replica);
  void on_drain(cluster::ReplicaIndex replica, cluster::AfterDrain after, bool force, Instant now);
  void on_resume(cluster::ReplicaIndex replica);

  // tickets
  void on_submitted(const cluster::Ticket& ticket, Instant now);
  void on_queued(cluster::TicketId id, Instant now);
  void on_waits_again(cluster::TicketId id);
  void on_dispatched(cluster::TicketId id, cluster::Launch launch, bool resumes, Instant now);
  void on_first_byte(cluster::TicketId id);
  void on_left(cluster::TicketId id);  // gave its place back, or lost it
  void on_ended(cluster::TicketId id, Instant now);
  void on_refused(cluster::TicketId id, const Error& error, bool accepted, Instant now);
  void on_served(cluster::TicketId id, std::uint64_t actual);
  // The pool hears that the launch died of this request.
  void on_killed_by(cluster::TicketId id, cluster::Launch launch);

  // Every second while anything waits. `late`: what was due is not done yet.
  void on_view(const cluster::PoolStatus& status, bool late, Instant now);
  // Faults have stopped long ago.
  void on_end(const cluster::PoolStatus& status, Instant now);

  const std::optional<std::string>& broken() const { return broken_; }
  void breaks(std::string promise);
  std::size_t open_tickets() const { return tickets_.size(); }
  std::uint64_t accepted() const { return accepted_; }
  std::uint64_t ended() const { return ended_; }

 private:
  struct Shadow {  // of a replica
    cluster::Generation generation{};
    std::uint32_t last = 0;     // launch that anybody had in its place
    std::uint32_t current = 0;  // its last launch
    std::uint32_t ready = 0;    // its launch that serves; 0: none
    int places = 0;
    int inside = 0;
    bool draining = false;
    bool held = false;
    bool removed = false;
    Instant drain_until{};  // whoever is in it until then may finish
    bool node_up = true;
    bool starts = false;  // an attempt or a runner is there
    bool asked = false;   // admin asked for the next start
    Instant ready_since{};
    Instant failed{};        // last failure that it has to recover from
    bool stable = false;     // that failure came after a stable time
    bool came_back = false;  // its node did since then
    int idle_seconds = 0;    // ready, empty, while others waited
    bool gone() const { return removed && !starts; }
  };
  struct Held {  // a ticket
    std::string key;
    double weight = 1;
    std::uint64_t tokens = 0;
    Instant deadline;
    std::optional<cluster::Launch> in;
    std::optional<cluster::Generation> began;  // the client has bytes of this one
    bool waits = false;
    bool accepted = false;
    int kills = 0;
  };
  Shadow& shadow(cluster::ReplicaIndex index) { return shadows_[index]; }
  // Fairness, by the plainest model: counters of charged tokens / weight, the lowest that waits is
  // next.
  double floor() const;
  void join(const std::string& key);
  void charge(const Held& held);

  const Scenario& scenario_;
  std::map<cluster::ReplicaIndex, Shadow> shadows_;
  std::unordered_map<cluster::TicketId, Held> tickets_;
  std::map<std::string, double> counters_;
  double served_ = 0;                   // counter of the last one served
  std::map<std::string, int> waiting_;  // tickets by key
  std::uint64_t accepted_ = 0;
  std::uint64_t ended_ = 0;
  std::optional<std::string> broken_;
};

}  // namespace flotilla::sim
