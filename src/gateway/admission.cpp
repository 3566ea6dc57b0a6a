#include "gateway/admission.h"

#include "base/check.h"

namespace flotilla::gateway {
namespace {

constexpr std::chrono::seconds kPulse{10};

}  // namespace

Admission::Admission(std::shared_ptr<PoolRuntime> pool, const Executor& executor,
                     std::shared_ptr<RequestTrace> trace, cluster::TicketId id, Pulse pulse)
    : pool_(std::move(pool)),
      trace_(std::move(trace)),
      id_(id),
      pulse_(std::move(pulse)),
      waiter_(executor) {
  pool_->put_waiter(id_, &waiter_, trace_->id());
}

Admission::~Admission() {
  if (open_) {
    pool_->brain().cancel(id_, pool_->now());
    pool_->pump();
  }
  pool_->take_waiter(id_);
}

Task<Admission::Place> Admission::enter(cluster::Ticket ticket) {
  open_ = true;
  cluster::Admission admission = pool_->brain().submit(std::move(ticket), pool_->now());
  co_return co_await settle(std::move(admission));
}

Task<Admission::Place> Admission::retry(cluster::Outcome outcome, Instant deadline) {
  cluster::Admission admission = pool_->brain().retry(id_, outcome, deadline, pool_->now());
  co_return co_await settle(std::move(admission));
}

Task<Admission::Place> Admission::settle(cluster::Admission admission) {
  waiter_.place.reset();
  if (auto* dispatched = std::get_if<cluster::Dispatched>(&admission)) {
    waiter_.place = pool_->find_launch(dispatched->launch);
    waiter_.why = dispatched->why;
    CHECK(waiter_.place);
  } else if (auto* refused = std::get_if<cluster::Refused>(&admission)) {
    waiter_.refused = std::move(refused->error);
  }
  pool_->pump();
  if (!waiter_.place && !waiter_.refused) trace_->queued();
  while (!waiter_.place && !waiter_.refused && !gone_) {
    const Instant before = pool_->now();
    co_await waiter_.wait(kPulse);
    if (waiter_.place || waiter_.refused || gone_ || pool_->now() - before < kPulse) continue;
    const bool there = co_await pulse_();
    gone_ = gone_ || !there;
  }
  if (waiter_.refused) {
    open_ = false;
    co_return ::flotilla::fail(*waiter_.refused);
  }
  if (gone_) co_return ::flotilla::fail(Code::Cancelled, "the client is gone");
  trace_->dispatched(waiter_.place->node.str(), waiter_.why);
  co_return waiter_.place;
}

void Admission::first_byte() {
  pool_->brain().first_byte(id_, pool_->now());
  pool_->pump();
}

void Admission::release(cluster::Outcome outcome, const cluster::Usage& usage) {
  CHECK(open_);
  open_ = false;
  pool_->brain().release(id_, outcome, usage, pool_->now());
  pool_->pump();
}

void Admission::client_gone() {
  gone_ = true;
  waiter_.wake();
}

}  // namespace flotilla::gateway
