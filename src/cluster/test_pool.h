#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/pool.h"

namespace flotilla::cluster {

// Two replicas of two places each (width 2, nothing ahead), unless a test says otherwise.
struct PoolTest : testing::Test {
  static PoolSettings settings() {
    PoolSettings out;
    out.ahead = 0;
    return out;
  }

  Launch add(const std::string& node, Generation generation = Generation{1}) {
    const ReplicaIndex index = pool.add_replica(NodeId(node), generation, Link::Up, now);
    drain();
    return launches.at(index);
  }
  Launch add_ready(const std::string& node, int width = 2, Generation generation = Generation{1}) {
    const Launch launch = add(node, generation);
    ready(launch, width);
    return launch;
  }
  void ready(Launch launch, int width = 2) {
    pool.on_ready(launch, {.width = width, .numerics = "x", .exact_resume = true}, now);
    drain();
  }
  Ticket ticket(const std::string& key = "k", std::uint64_t tokens = 100) {
    Ticket out;
    out.id = TicketId{++last_id};
    out.key = key;
    out.tokens = tokens;
    out.bytes = tokens * 4;
    out.deadline = now + std::chrono::seconds(600);
    return out;
  }
  // 0 … n: dispatched to that replica; -1 queued; -2 refused (see `error`).
  int note(const Admission& admission) {
    if (const auto* at = std::get_if<Dispatched>(&admission)) {
      return static_cast<int>(at->launch.replica);
    }
    if (const auto* refused = std::get_if<Refused>(&admission)) error = refused->error;
    return std::holds_alternative<Queued>(admission) ? -1 : -2;
  }
  int submit(Ticket t) { return note(pool.submit(std::move(t), now)); }
  int submit() { return submit(ticket()); }
  int retry(std::uint64_t id, Outcome outcome) {
    const int at = note(pool.retry(TicketId{id}, outcome, now + std::chrono::seconds(600), now));
    drain();
    return at;
  }
  void release(std::uint64_t id, Outcome outcome = Outcome::Completed) {
    pool.release(TicketId{id}, outcome, {}, now);
    drain();
  }
  void crash(Launch launch, bool own_fault = false, std::vector<TicketId> named = {}) {
    pool.on_exited(launch, {.reason = "killed", .own_fault = own_fault, .named = std::move(named)},
                   now);
    drain();
  }
  void drain() {
    for (Action& action : pool.take_actions()) {
      if (const auto* start = std::get_if<StartReplica>(&action)) {
        launches[start->launch.replica] = start->launch;
        ++starts;
      }
      if (const auto* sent = std::get_if<Dispatch>(&action)) {
        dispatched[static_cast<std::uint64_t>(sent->ticket)] =
            static_cast<int>(sent->launch.replica);
      }
      if (const auto* refused = std::get_if<Refuse>(&action)) {
        refusals[static_cast<std::uint64_t>(refused->ticket)] = refused->error;
      }
      if (auto* drop = std::get_if<DropReplica>(&action)) dropped = drop->tickets;
      if (std::holds_alternative<StopReplica>(action)) ++stops;
    }
  }
  // As the gateway's timer; every runner speaks once a second.
  void pass(Duration time) {
    const Instant end = now + time;
    while (now < end) {
      now += std::chrono::milliseconds(250);
      for (const auto& [index, launch] : launches) pool.on_heartbeat(launch, {.step = ++step}, now);
      if (now >= pool.next_deadline()) pool.tick(now);
      drain();
    }
  }
  bool sent(std::uint64_t id) const { return dispatched.contains(id); }

  Random random{1};
  Instant now = Instant{} + std::chrono::hours(1);
  Pool pool{Alias("m"), settings(), random};
  std::map<ReplicaIndex, Launch> launches;
  std::map<std::uint64_t, int> dispatched;
  std::map<std::uint64_t, Error> refusals;
  std::vector<TicketId> dropped;
  Error error;
  std::uint64_t last_id = 0;
  std::uint64_t step = 0;
  int starts = 0;
  int stops = 0;
};

}  // namespace flotilla::cluster
