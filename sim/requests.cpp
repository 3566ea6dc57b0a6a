#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "sim/world.h"

// The part of World that plays a request's owner.
namespace flotilla::sim {

using namespace cluster;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {
constexpr Duration kDeadline = seconds(600);
constexpr double kPrefillPerS = 800;
constexpr Duration kStep = milliseconds(25);
unsigned index_of(Launch launch) { return static_cast<unsigned>(launch.replica); }
}  // namespace

void World::submit(Request request) {
  const Instant now = agenda_.now();
  const TicketId id{++next_ticket_};
  request.ticket.id = id;
  request.ticket.own_timeout = request.timeout != Duration::zero();
  request.ticket.deadline = now + (request.ticket.own_timeout ? request.timeout : kDeadline);
  for (const Duration limit : {request.patience, request.timeout}) {
    if (limit == Duration::zero()) continue;
    agenda_.in(limit, [this, id] {
      if (requests_.contains(id)) end(id, Outcome::Cancelled, {});
    });
  }
  checkers_.on_submitted(request.ticket, now);
  Ticket ticket = request.ticket;
  requests_.emplace(id, std::move(request));
  const Admission admission = pool_.submit(std::move(ticket), now);
  act();  // places that others got before it
  answer(id, admission, false);
}

void World::answer(TicketId id, const Admission& admission, bool again) {
  if (const auto* dispatched = std::get_if<Dispatched>(&admission)) {
    send(id, dispatched->launch, again);
  } else if (const auto* refused = std::get_if<Refused>(&admission)) {
    checkers_.on_refused(id, refused->error, again, agenda_.now());
    requests_.erase(id);
  } else if (again) {
    checkers_.on_waits_again(id);
  } else {
    checkers_.on_queued(id, agenda_.now());
  }
}

void World::send(TicketId id, Launch launch, bool again) {
  checkers_.on_dispatched(id, launch, again, agenda_.now());
  note("ticket {} to replica {} launch {}", static_cast<unsigned long>(id), index_of(launch),
       launch.number);
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  Request& request = found->second;
  const std::uint32_t attempt = ++request.attempt;
  request.launch = launch;
  const std::size_t at = members_[index_of(launch)].node;
  over_link(at, jitter(3), [this, id, launch, attempt, at] {
    const auto it = requests_.find(id);
    if (it == requests_.end() || it->second.attempt != attempt || it->second.launch != launch)
      return;
    const std::shared_ptr<FakeRunner> runner = nodes_[at]->find(launch.replica);
    const bool refuses = runner == nullptr || runner->launch != launch || nodes_[at]->fail_fast;
    if (refuses) return fail(id, attempt);
    const Request& request = it->second;
    runner->accept({.ticket = id,
                    .attempt = attempt,
                    .prefill = std::chrono::duration_cast<Duration>(
                        std::chrono::duration<double>(request.prompt_tokens / kPrefillPerS)),
                    .decode = kStep * request.output_tokens,
                    .poison = request.poison},
                   nodes_[at]->slowness);
  });
}

// News that comes from a runner: late over a cut link, stale if its owner has moved on.
void World::owner_hears(int node, const Job& job, Agenda::Deed deed) {
  over_link(static_cast<std::size_t>(node), jitter(2), [this, job, deed = std::move(deed)] {
    const auto found = requests_.find(job.ticket);
    if (found == requests_.end() || found->second.attempt != job.attempt || !found->second.launch)
      return;
    deed();
  });
}

void World::on_job_first_byte(const Job& job, int node) {
  owner_hears(node, job, [this, id = job.ticket] {
    requests_.at(id).any_byte = true;
    checkers_.on_first_byte(id);
    pool_.first_byte(id, agenda_.now());
    act();
  });
}

void World::on_job_done(const Job& job, int node) {
  owner_hears(node, job, [this, id = job.ticket, prefill = job.prefill] {
    const Request& request = requests_.at(id);
    end(id, Outcome::Completed,
        {.prompt_tokens = static_cast<std::uint64_t>(request.prompt_tokens),
         .cached_tokens = 0,
         .completion_tokens = static_cast<std::uint64_t>(request.output_tokens),
         .prompt_time = prefill});
  });
}

void World::on_job_poison(const Job& job, int node, ReplicaIndex replica) {
  const auto found = requests_.find(job.ticket);
  const std::shared_ptr<FakeRunner> runner = nodes_[static_cast<std::size_t>(node)]->find(replica);
  if (found == requests_.end() || runner == nullptr) return;
  Exit exit{.reason = "SIGSEGV", .own_fault = true};
  if (found->second.named) exit.named = {job.ticket};
  die(runner, static_cast<std::size_t>(node), std::move(exit), job.ticket);
}

void World::fail(TicketId id, std::uint32_t attempt) {
  const auto found = requests_.find(id);
  if (found == requests_.end() || found->second.attempt != attempt || !found->second.launch) return;
  Request& request = found->second;
  const Launch launch = *std::exchange(request.launch, std::nullopt);
  checkers_.on_left(id);
  if (const auto runner = nodes_[members_[index_of(launch)].node]->find(launch.replica)) {
    runner->remove(id);
  }
  const Instant now = agenda_.now();
  const Instant deadline = request.ticket.own_timeout
                               ? request.ticket.deadline
                               : (request.any_byte ? Instant::max() : request.ticket.deadline);
  note("ticket {} lost its replica", static_cast<unsigned long>(id));
  answer(id,
         pool_.retry(
             id, request.any_byte ? Outcome::LostAfterFirstByte : Outcome::FailedBeforeFirstByte,
             deadline, now),
         true);
  act();
}

void World::end(TicketId id, Outcome outcome, const Usage& usage) {
  const auto found = requests_.find(id);
  const std::optional<Launch> launch = found->second.launch;
  requests_.erase(found);
  if (usage.prompt_tokens > 0)
    checkers_.on_served(id, usage.prompt_tokens + usage.completion_tokens);
  checkers_.on_ended(id, agenda_.now());
  if (launch) {
    if (const auto runner = nodes_[members_[index_of(*launch)].node]->find(launch->replica)) {
      runner->remove(id);
    }
  }
  pool_.release(id, outcome, usage, agenda_.now());
  act();
}

}  // namespace flotilla::sim
