#pragma once

#include <functional>
#include <memory>

#include "base/task.h"
#include "gateway/pool_runtime.h"
#include "gateway/request_log.h"

namespace flotilla::gateway {

// One request's ticket in its pool, from submit to its end. Ends exactly once: by release(), by a
// refusal, or (the coroutine left early, the client went away) by this guard.
class Admission {
 public:
  using Place = std::shared_ptr<LaunchRuntime>;
  // Runs every 10 s while the request waits; false ends the wait (the client is gone).
  using Pulse = std::function<Awaitable<bool>()>;

  Admission(std::shared_ptr<PoolRuntime> pool, const Executor& executor,
            std::shared_ptr<RequestTrace> trace, cluster::TicketId id, Pulse pulse);
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;
  ~Admission();

  // A place in a replica, now or after waiting for it. Cancelled: the client is gone.
  Task<Place> enter(cluster::Ticket ticket);
  // The replica failed this request: another place, before all others.
  Task<Place> retry(cluster::Outcome outcome, Instant deadline);
  void first_byte();
  void release(cluster::Outcome outcome, const cluster::Usage& usage);
  // From the exchange's callback: nobody is there to wait for a place.
  void client_gone();

 private:
  Task<Place> settle(cluster::Admission admission);

  std::shared_ptr<PoolRuntime> pool_;
  const std::shared_ptr<RequestTrace> trace_;
  const cluster::TicketId id_;
  Pulse pulse_;
  Waiter waiter_;
  bool open_ = false;  // the brain has our ticket
  bool gone_ = false;
};

}  // namespace flotilla::gateway
