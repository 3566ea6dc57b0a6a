#include "runner/sequences.h"

#include <utility>

namespace flotilla::runner {

std::optional<SequenceId> Sequences::start(SequenceStart sequence, SequenceListener& listener,
                                           int choice, std::unique_ptr<engine::Grammar> grammar) {
  const SequenceId id = ++last_id_;
  sequence.id = id;
  if (thread_ == nullptr || !thread_->start(std::move(sequence), std::move(grammar))) {
    return std::nullopt;
  }
  owners_.emplace(id, Owner{.listener = &listener, .choice = choice});
  ++changes_;
  return id;
}

void Sequences::remove(SequenceId id) {
  if (owners_.erase(id) == 0) return;
  if (thread_ != nullptr) thread_->end(id);
  ++changes_;
}

void Sequences::park(SequenceId id) {
  if (thread_ != nullptr) thread_->park(id);
}

void Sequences::unpark(SequenceId id) {
  if (thread_ != nullptr) thread_->unpark(id);
}

void Sequences::deliver(StepReport report) {
  ++changes_;
  meter_.add(report.stats, clock_.now());
  for (SequenceEvent& event : report.events) {
    const auto found = owners_.find(event.id);
    if (found == owners_.end()) continue;
    const Owner owner = found->second;
    if (event.finish || event.error) owners_.erase(found);
    owner.listener->on_event(owner.choice, std::move(event));
  }
}

}  // namespace flotilla::runner
