#include "sim/fake_replica.h"

#include <algorithm>
#include <utility>

namespace flotilla::sim {

namespace {
Duration scaled(Duration time, double by) {
  return std::chrono::duration_cast<Duration>(time * by);
}
}  // namespace

void FakeRunner::accept(Job job, double slowness) {
  slowness_ = slowness;
  jobs_.push_back(job);
  start_next();
}

Job* FakeRunner::find(cluster::TicketId ticket, std::uint32_t attempt) {
  const auto it = std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& job) {
    return job.ticket == ticket && job.attempt == attempt;
  });
  return it == jobs_.end() ? nullptr : &*it;
}

void FakeRunner::remove(cluster::TicketId ticket) {
  const auto it = std::find_if(jobs_.begin(), jobs_.end(),
                               [&](const Job& job) { return job.ticket == ticket; });
  if (it == jobs_.end()) return;
  if (it->running) --running_;
  jobs_.erase(it);
  start_next();
}

void FakeRunner::start_next() {
  if (hung || dead) return;
  for (Job& job : jobs_) {
    if (running_ >= width_) return;
    if (job.running) continue;
    job.running = true;
    ++running_;
    ++step_;
    agenda_.in(scaled(job.prefill, slowness_),
               [self = shared_from_this(), ticket = job.ticket, attempt = job.attempt] {
                 if (self->hung || self->dead) return;
                 const Job* found = self->find(ticket, attempt);
                 if (found == nullptr) return;
                 const Job now = *found;
                 if (now.poison) {
                   self->owner_.on_job_poison(now, self->node_, self->launch.replica);
                   return;
                 }
                 self->owner_.on_job_first_byte(now, self->node_);
                 self->agenda_.in(scaled(now.decode, self->slowness_), [self, now] {
                   if (self->hung || self->dead) return;
                   if (self->find(now.ticket, now.attempt) == nullptr) return;
                   self->remove(now.ticket);
                   self->owner_.on_job_done(now, self->node_);
                 });
               });
  }
}

cluster::Heartbeat FakeRunner::beat() {
  if (running_ > 0) ++step_;
  return {.step = step_,
          .step_max = std::chrono::milliseconds(50),
          .running = running_,
          .waiting = static_cast<int>(jobs_.size()) - running_,
          .tokens_per_s = 10.0 * running_};
}

}  // namespace flotilla::sim
