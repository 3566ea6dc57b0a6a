#pragma once

#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "cluster/affinity.h"
#include "cluster/dispatch.h"
#include "cluster/pool.h"
#include "cluster/queue.h"

namespace flotilla::cluster {

// What Pool is made of; for pool*.cpp only. Tickets are in pool_tickets.cpp, the choice of their
// replica in pool_dispatch.cpp, replicas in pool_replicas.cpp.
//
// Kept by pump(): while a place is free for everybody, nothing waits in the Anywhere lane, and
// nothing waits for the replica that has it. So a place that frees concerns that replica's own
// lanes only.
struct Pool::State {
  // A ticket that has not ended.
  struct Flight {
    enum class Where : std::uint8_t {
      Waiting,   // in the fair queue
      Doubtful,  // failed by a launch that may be dying: waits a moment for news of it
      Retrying,  // before everybody else, in order of its failure
      Suspect,   // waits to be alone in a replica
      Placed,    // reserved in `launch`
      Lost,      // `launch` is over; its owner has not called retry or release yet
    };
    Ticket ticket;
    Where where = Where::Waiting;
    Launch launch;
    Instant expires = Instant::max();  // of waiting, as in `expiries`
    Instant home_until = Instant::max();
    Instant placed_at{};
    Why why = Why::LeastBusy;  // it is where it is
    bool charged = false;
    bool first_byte = false;           // since its last placing
    bool suspect = false;              // it was in a runner that died by its own fault
    std::uint8_t crashes = 0;          // that may have been its doing
    std::uint8_t named_crashes = 0;    // those of them whose breadcrumb named it
    std::uint8_t failures = 0;         // by runners that live on
    std::optional<Generation> pinned;  // it has sent tokens of this generation
    std::vector<Launch> except;
  };
  // What the pool knows of a replica beside its life.
  struct Unit {
    Replica replica;
    std::vector<TicketId> inside;
    std::vector<TicketId> doubtful;
    Instant doubt_until = Instant::max();
    double service_s = 0;        // mean time of a request in it; 0: none seen
    double prefill_per_s = 500;  // prompt tokens, until it is measured
  };
  using Expiry = std::pair<Instant, TicketId>;

  State(Alias a, PoolSettings s, Random& r) : alias(std::move(a)), settings(s), random(r) {
    affinity.configure(settings.affinity);
  }

  Unit& unit(ReplicaIndex index) { return *units[static_cast<std::size_t>(index)]; }
  const Unit& unit(ReplicaIndex index) const { return *units[static_cast<std::size_t>(index)]; }
  // The replica, if this is its launch that goes on.
  Unit* find_current(Launch launch);

  // pool_replicas.cpp
  std::optional<ReplicaIndex> find_vacant() const;
  void apply(Unit& unit, const ReplicaEffects& effects, const std::string& reason, Instant now);
  void open(Unit& unit);
  void drop(Unit& unit, std::uint32_t number, const std::string& reason, Instant now);
  void blame(Unit& unit, const Exit& exit);
  void settle_drain(Unit& unit, Instant now);
  void choose_generation();
  void check_replicas(Instant now);
  void plan_check(Instant now);
  void settle_doubts(Unit& unit, Instant now);
  bool somebody_on_the_way() const;
  void wake_for(const Unit& unit, Instant now);
  void restart_if_useless(Unit& unit, Instant now);

  // pool_dispatch.cpp
  // For a new ticket: a replica with a free place, or the lane to wait in.
  std::variant<ReplicaIndex, Lane> choose(const Ticket& ticket, Instant now);
  bool worth_waiting(const Unit& home, const Ticket& ticket) const;
  Duration prefill_time(const Unit& home, const Ticket& ticket) const;
  std::vector<Launch> cannot_go_on(const Flight& flight) const;
  std::optional<ReplicaIndex> choose_again(const Flight& flight, Instant now);
  Why why(const Flight& flight, const Unit& to, Instant now);
  void place(Flight& flight, ReplicaIndex replica, Instant now);
  void dispatch(Flight& flight, ReplicaIndex replica, Instant now);
  void place_retries(Instant now);
  bool pump_if_waited(ReplicaIndex replica, Instant now);
  bool pump_one(ReplicaIndex replica, Instant now);
  void pump(ReplicaIndex replica, Instant now);
  void pump_all(Instant now);
  void place_suspects(Instant now);
  void stop_clearing();

  // pool_tickets.cpp
  std::optional<Error> refuse(const Ticket& ticket, Instant now) const;
  Error waited_out(const Flight& flight, Instant now) const;
  int retry_after(Instant now) const;
  void enqueue(Flight& flight, Lane lane, Instant now);
  void requeue(Flight& flight);
  void doubt(Flight& flight, Instant now);
  void unqueue(Flight& flight);
  // Gives the place back; who else gets it is pump's.
  void leave(Flight& flight, Outcome outcome, Instant now);
  void learn(const Flight& flight, const Usage& usage, Instant now);
  void end(TicketId id);
  void refuse_stranded(Instant now);
  std::optional<Error> no_more(const Flight& flight, Instant deadline, Instant now) const;
  void check_queue(Instant now);
  std::size_t placed() const;

  Alias alias;
  PoolSettings settings;
  Random& random;
  std::vector<std::unique_ptr<Unit>> units;  // by ReplicaIndex
  std::vector<ReplicaIndex> by_age;          // oldest first
  Dispatcher dispatcher;
  FairQueue queue;
  AffinityTable affinity{AffinitySettings{}};
  DrainRate drain_rate;
  std::unordered_map<TicketId, Flight> flights;
  std::list<TicketId> retries;
  std::list<TicketId> suspects;
  std::set<Expiry> expiries;             // of all that wait
  std::set<Expiry> home_limits;          // until when tickets wait for their home
  std::optional<ReplicaIndex> clearing;  // takes nothing new: a suspect will be alone in it
  Generation serving{};                  // new requests go to it
  std::size_t lost = 0;                  // flights in Where::Lost
  std::size_t doubts = 0;                // flights in Where::Doubtful
  int live = 0;
  std::optional<Error> closed;
  std::vector<Action> actions;
  Instant replicas_due = Instant::max();
  std::uint64_t version = 0;
};

}  // namespace flotilla::cluster
