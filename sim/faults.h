#pragma once

#include "sim/world.h"

namespace flotilla::sim {

// Lets go wrong what the scenario allows, at random times, until stop().
class Faults {
 public:
  Faults(const Scenario& scenario, World& world, Agenda& agenda, Random& random);
  void stop() { stopped_ = true; }

 private:
  void next();
  void strike(Fault fault, std::size_t node);
  Duration between(double least_s, double most_s);

  const Scenario& scenario_;
  World& world_;
  Agenda& agenda_;
  Random& random_;
  bool stopped_ = false;
};

}  // namespace flotilla::sim
