#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "cluster/ticket.h"

namespace flotilla::cluster {

// Start a runner on the node. If the node's agent still has an earlier launch of this replica, that
// one ends first. Answer with Pool::on_loading/on_ready/on_start_failed/on_exited of this launch.
struct StartReplica {
  Launch launch;
  NodeId node;
  Generation generation{};
};

// End the launch's runner (it is hung, stuck in loading, drained or unloaded). No answer is needed.
struct StopReplica {
  Launch launch;
  NodeId node;
};

// The launch serves no more: cut its connections. Each ticket listed was in it; its owner calls
// Pool::retry (or release). Said for every way a runner is lost, also when sockets have told
// already.
struct DropReplica {
  Launch launch;
  NodeId node;
  std::string reason;
  std::vector<TicketId> tickets;
};

// Why a ticket went where it went.
enum class Why : std::uint8_t {
  LeastBusy,
  Home,    // its conversation's state is there
  GoesOn,  // another replica lost it
  Alone,   // it may have crashed a runner
};
const char* to_string(Why why);

// A queued ticket got its place.
struct Dispatch {
  TicketId ticket{};
  Launch launch;
  NodeId node;
  Why why = Why::LeastBusy;
};

// A queued ticket waited out, or one that was retried cannot go on (it crashed two runners, nobody
// of its generation is left); it is gone.
struct Refuse {
  TicketId ticket{};
  Error error;
};

using Action = std::variant<StartReplica, StopReplica, DropReplica, Dispatch, Refuse>;

// The direct answer to submit and retry.
struct Dispatched {
  Launch launch;
  NodeId node;
  Why why = Why::LeastBusy;
};
struct Queued {};
struct Refused {
  Error error;
};
using Admission = std::variant<Dispatched, Queued, Refused>;

}  // namespace flotilla::cluster
