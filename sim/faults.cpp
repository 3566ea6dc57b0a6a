#include "sim/faults.h"

#include <chrono>
#include <cmath>

namespace flotilla::sim {

using cluster::AfterDrain;

namespace {
constexpr std::size_t kNodesMax = 1200;  // edits add no more beyond it
}

Faults::Faults(const Scenario& scenario, World& world, Agenda& agenda, Random& random)
    : scenario_(scenario), world_(world), agenda_(agenda), random_(random) {
  next();
}

Duration Faults::between(double least_s, double most_s) {
  // As many short ones as long ones.
  const double s = least_s * std::pow(most_s / least_s, random_.uniform());
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

void Faults::next() {
  const double pause_s = -std::log(1 - random_.uniform()) * 3600 / scenario_.faults_per_hour;
  agenda_.in(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(pause_s)), [this] {
    if (stopped_) return;
    const auto fault = static_cast<Fault>(random_.below(kFaults));
    const std::size_t node = random_.below(world_.node_count());
    if (scenario_.has(fault)) strike(fault, node);
    next();
  });
}

void Faults::strike(Fault fault, std::size_t node) {
  FakeNode& at = world_.node(node);
  switch (fault) {
    case Fault::Kill: world_.kill(node, false); break;
    case Fault::Crash: world_.kill(node, true); break;
    case Fault::Hang: world_.hang(node); break;
    case Fault::LinkCut: world_.cut(node, between(0.5, 200), false); break;
    case Fault::NodeAway: world_.cut(node, std::chrono::hours(1), random_.chance(0.5)); break;
    case Fault::Reboot: world_.cut(node, between(5, 300), true); break;
    case Fault::SlowNode:
      at.slowness = 10;
      agenda_.in(between(10, 600), [&at] { at.slowness = 1; });
      break;
    case Fault::FailFast:
      at.fail_fast = true;
      agenda_.in(between(1, 300), [&at] { at.fail_fast = false; });
      break;
    case Fault::LoadFails:
      at.load_failures = 1 + static_cast<int>(random_.below(4));
      world_.kill(node, false);
      break;
    case Fault::LoadStalls:
      at.load_stalls = 1;
      world_.kill(node, false);
      break;
    case Fault::Edit:
      if (world_.node_count() < kNodesMax) world_.add_node();
      world_.remove_node(node);
      if (random_.chance(0.3)) {
        agenda_.in(between(0.1, 20), [this, node] { world_.kill(node, false); });
      }
      break;
    case Fault::Reload: world_.reload(); break;
    case Fault::Admin:
      world_.admin(node, random_.chance(0.5) ? AfterDrain::Restart : AfterDrain::Hold,
                   between(1, 600));
      break;
    case Fault::GatewayStalls: agenda_.skip(between(0.5, 100)); break;
    case Fault::Cancel:
    case Fault::Poison:
    case Fault::kCount: break;  // the workload's
  }
}

}  // namespace flotilla::sim
