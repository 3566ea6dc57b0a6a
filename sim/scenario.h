#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "cluster/settings.h"

namespace flotilla::sim {

// What may go wrong in a history. Each seed leaves a random part of it out: bugs hide behind faults
// that always come together.
enum class Fault : std::uint8_t {
  Kill,           // SIGKILL of a runner
  Crash,          // it dies by its own fault
  Hang,           // SIGSTOP
  LinkCut,        // packets dropped for seconds to minutes
  NodeAway,       // off for an hour
  Reboot,         // runner gone and link cut for a while
  SlowNode,       // ten times slower for a while
  FailFast,       // answers every request with an error for a while
  LoadFails,      // exits while it loads
  LoadStalls,     // hangs while it loads
  Edit,           // a node is taken out, another comes
  Reload,         // a new generation
  Admin,          // restart, drain and resume of a replica
  Cancel,         // clients that go away
  Poison,         // requests that crash the runner
  GatewayStalls,  // the gateway's process stands still
  kCount,
};
inline constexpr std::size_t kFaults = static_cast<std::size_t>(Fault::kCount);
const char* to_string(Fault fault);

// All that a seed decides in advance.
struct Scenario {
  std::uint64_t seed = 0;
  int nodes = 4;
  Duration length = std::chrono::hours(1);
  std::array<bool, kFaults> faults{};
  double faults_per_hour = 30;  // over all nodes
  double requests_per_s = 1;
  int keys = 4;
  int sessions = 40;  // 0: requests without history, so that only fairness orders the queue
  int width = 8;
  int ahead = 2;
  Duration load_time = std::chrono::seconds(20);
  cluster::PoolSettings settings;
  bool trace = false;

  bool has(Fault fault) const { return faults[static_cast<std::size_t>(fault)]; }
};

// `quiet_share` of the seeds have few requests.
Scenario make_scenario(std::uint64_t seed, int nodes_max, Duration length, double quiet_share);
std::string describe(const Scenario& scenario);

}  // namespace flotilla::sim
