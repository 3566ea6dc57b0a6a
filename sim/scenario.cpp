#include "sim/scenario.h"

#include <fmt/format.h>

namespace flotilla::sim {

namespace {
constexpr std::array<const char*, kFaults> kNames = {
    "kill",      "crash",     "hang",       "link-cut",      "node-away", "reboot",
    "slow-node", "fail-fast", "load-fails", "load-stalls",   "edit",      "reload",
    "admin",     "cancel",    "poison",     "gateway-stalls"};
}

const char* to_string(Fault fault) { return kNames[static_cast<std::size_t>(fault)]; }

Scenario make_scenario(std::uint64_t seed, int nodes_max, Duration length, double quiet_share) {
  Random random(seed);
  Scenario out;
  out.seed = seed;
  out.length = length;
  out.nodes = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(nodes_max)));
  const double share = random.uniform();
  for (bool& on : out.faults) on = random.chance(share);
  out.width = random.chance(0.25) ? 1 : 1 + static_cast<int>(random.below(12));
  out.ahead = out.width == 1 ? 0 : 2;
  out.keys = 1 + static_cast<int>(random.below(8));
  out.sessions = random.chance(0.3) ? 0 : 1 + static_cast<int>(random.below(100));
  out.faults_per_hour = 2 + 60 * random.uniform();
  // From nearly idle to more than the nodes can do: a request takes some 5 s of a slot.
  const double capacity = out.nodes * out.width / 5.0;
  out.requests_per_s = capacity * (0.02 + 0.5 * random.uniform() * random.uniform());
  if (random.chance(0.15)) out.requests_per_s = capacity * 1.5;
  // Most hours of a pool's life are quiet ones: few requests, the same faults.
  if (random.chance(quiet_share)) out.requests_per_s *= 0.03;
  out.load_time = std::chrono::seconds(1 + random.below(60));
  out.settings.ahead = out.ahead;
  if (random.chance(0.3)) {
    out.settings.heal.backoff_min = std::chrono::seconds(1);
    out.settings.heal.backoff_max = std::chrono::seconds(4);
  }
  if (random.chance(0.3)) out.settings.queue.tickets_max = 8 + random.below(64);
  return out;
}

std::string describe(const Scenario& s) {
  std::string faults;
  for (std::size_t i = 0; i < kFaults; ++i) {
    if (s.faults[i]) faults += std::string(faults.empty() ? "" : ",") + kNames[i];
  }
  return fmt::format("nodes={} width={} rps={:.2f} keys={} sessions={} faults/h={:.0f} [{}]",
                     s.nodes, s.width, s.requests_per_s, s.keys, s.sessions, s.faults_per_hour,
                     faults);
}

}  // namespace flotilla::sim
