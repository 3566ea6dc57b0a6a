#pragma once

#include <cstdint>
#include <vector>

#include "cluster/affinity.h"
#include "sim/world.h"

namespace flotilla::sim {

// Clients: conversations whose turns come at random, sometimes in bursts, under a few API keys.
class Workload {
 public:
  Workload(const Scenario& scenario, World& world, Agenda& agenda, Random& random);
  void stop() { stopped_ = true; }

 private:
  struct Session {
    int key = 0;
    bool named = false;  // sends a session id
    std::vector<cluster::MessageDigest> messages;
  };
  void next();
  void converse(Request& out);
  Request make_request();

  const Scenario& scenario_;
  World& world_;
  Agenda& agenda_;
  Random& random_;
  std::vector<Session> sessions_;
  bool stopped_ = false;
};

}  // namespace flotilla::sim
