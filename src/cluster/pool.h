#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/random.h"
#include "cluster/actions.h"
#include "cluster/replica.h"
#include "cluster/settings.h"
#include "cluster/status.h"
#include "cluster/ticket.h"

namespace flotilla::cluster {

// The brain of one declared pool: admission, fair queue, dispatch, affinity, self-healing. Pure:
// events and `now` in, actions out; no clock, no I/O, chance only by `random`. One thread owns it.
// `now` never runs backwards.
//
//   A ticket's life:  submit -> Dispatched | Queued | Refused
//                     Queued -> (action) Dispatch | Refuse, or cancel
//                     dispatched -> first_byte? -> release, or retry -> as submit
//   After EVERY call that takes `now`: take_actions() and do them in order, then arm one timer for
//   next_deadline() that calls tick(). A call never runs another call's actions.
//
// Invariants: a launch never holds more tickets than its places; a ticket ends exactly once
// (Refused, Refuse, cancel or release); nothing is dispatched to a launch that is not ready; a
// replica that is not ready is due for another attempt at a known time or waits for its node.
class Pool {
 public:
  Pool(Alias alias, PoolSettings settings, Random& random);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Replicas: what should be.

  // A replica on `node`, started at once where the link is Up. Connecting: waits for on_node_back
  // or on_node_lost. At most one per node and generation, besides one that ends. It has the place
  // of one that is gone, if any.
  ReplicaIndex add_replica(NodeId node, Generation generation, Link link, Instant now);
  // No new requests; running ones end by themselves, after HealSettings::drain they are dropped
  // (and so go on elsewhere). `force`: dropped at once. Hold never drops. A replica that is not
  // ready is stopped at once (Remove), launched afresh (Restart) or comes up draining (Hold).
  void drain(ReplicaIndex replica, AfterDrain after, bool force, Instant now);
  // Takes Hold back.
  void resume(ReplicaIndex replica, Instant now);
  // Unload: every replica drained with Remove, waiting tickets refused with `error`, nothing new.
  void close(Error error, bool force, Instant now);
  bool closed() const;   // close() was called
  bool stopped() const;  // every replica is stopped: the pool may be destroyed
  void configure(PoolSettings settings, Instant now);

  // Replicas: what happens. Events of a launch that
  // is over are ignored.
  void on_loading(Launch launch, std::uint64_t loaded_bytes, std::uint64_t total_bytes,
                  Instant now);
  void on_ready(Launch launch, ReplicaInfo info, Instant now);
  void on_start_failed(Launch launch, std::string error, Instant now);
  void on_exited(Launch launch, const Exit& exit, Instant now);
  void on_heartbeat(Launch launch, const Heartbeat& beat, Instant now);
  // Somebody else found that it does not answer (a foreign engine's health check). It is stopped.
  void on_hang(Launch launch, std::string reason, Instant now);
  // The link to a node, for every replica of this pool there. Lost: its requests go elsewhere, no
  // attempt is made until the node is back; back: it is started at once.
  void on_node_lost(const NodeId& node, std::string reason, Instant now);
  void on_node_back(const NodeId& node, Instant now);
  // In place of on_node_back where the agent still holds this replica's runner, ready and of the
  // same model and settings: nothing is loaded. Returns the launch that its events name from here
  // on.
  Launch adopt(ReplicaIndex replica, ReplicaInfo info, Instant now);

  // Tickets.

  // The admission rule: a place at once, or the queue, or refused (queue full; nobody lives and
  // none is due in time) with Error::retry_after_s set. The id must not be in the pool already.
  Admission submit(Ticket ticket, Instant now);
  // The first byte of the answer came: from here on the deadline does not count.
  void first_byte(TicketId id, Instant now);
  // The ticket's end. Frees its place; corrects what its key was charged.
  void release(TicketId id, Outcome outcome, const Usage& usage, Instant now);
  // Instead of release, when its replica failed it (FailedBeforeFirstByte or LostAfterFirstByte):
  // it gets another place before all others, never that launch while another one lives. With
  // LostAfterFirstByte only a replica of the same generation. Before its launch was dropped it is
  // Queued for up to 100 ms: news of the process, and with it who is to blame, may be a moment
  // behind. Refused, or Refuse later: it has ended (its deadline is over, it crashed two runners
  // (Code::Internal, reason "poison"), it failed everywhere). `deadline`: until when it may wait.
  Admission retry(TicketId id, Outcome outcome, Instant deadline, Instant now);
  // The client is gone, waiting or dispatched: the ticket has ended. Unknown ids are ignored.
  void cancel(TicketId id, Instant now);

  // Time and view.

  // May be called early or late.
  void tick(Instant now);
  // When tick is next due; Instant::max(): never.
  Instant next_deadline() const;
  std::vector<Action> take_actions();

  const Alias& alias() const;
  PoolStatus snapshot(Instant now) const;
  // The latest conversations whose home still has them. forget: the next turn goes anywhere.
  std::vector<SessionStatus> sessions(std::size_t most, Instant now) const;
  bool forget_session(std::uint64_t id);
  // Grows with each change that snapshot shows, tokens and bytes aside: to coalesce pushed status.
  std::uint64_t version() const;
  // Cheap, for each request: can anything be dispatched to; how many live.
  int live_count() const;
  std::size_t queue_depth() const;
  std::size_t in_flight() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flotilla::cluster
