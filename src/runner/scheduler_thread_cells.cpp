#include <algorithm>
#include <utility>

#include "base/log.h"
#include "runner/scheduler_thread.h"

// What the scheduler thread computes only once: cells of sequences that are over, and of such that
// are under way with the same beginning.
namespace flotilla::runner {

// Into the scheduler, with the cells that are in store; or behind another sequence that computes
// what both need.
void SchedulerThread::enter(batch::Newcomer newcomer, bool may_follow) {
  const auto match = store_.find(newcomer.group, newcomer.tokens);
  const int reusable = match ? match->length : 0;
  if (may_follow && flight_.follow(newcomer, reusable)) return;
  if (match) {
    saved_[newcomer.id] = {.cells = match->cells, .length = match->length};
    sequences_.at(newcomer.id).cached_tokens = match->length;
  }
  flight_.lead(newcomer);
  scheduler_.submit({.id = newcomer.id,
                     .prompt = std::move(newcomer.tokens),
                     .answer_reserve = newcomer.answer_reserve,
                     .held = reusable},
                    clock_.now());
  if (newcomer.parked) scheduler_.park(newcomer.id);
}

void SchedulerThread::release_followers() {
  if (flight_.following() == 0) return;
  const auto held = [this](SequenceId leader) -> std::optional<int> {
    const batch::Phase phase = scheduler_.phase(leader);
    if (phase == batch::Phase::Ended || phase == batch::Phase::Parked) return std::nullopt;
    const auto cells = scheduler_.held(leader);
    return cells ? static_cast<int>(cells->tokens.size()) : 0;
  };
  for (auto& [newcomer, leader, shared] : flight_.take_ready(held)) {
    const auto stored = store_.find(newcomer.group, newcomer.tokens);
    if (leader != 0 && (!stored || stored->length < shared)) store_cells(leader);
    enter(std::move(newcomer), false);
  }
}

// For whoever goes on from what this sequence has computed.
void SchedulerThread::store_cells(SequenceId id) {
  const Sequence& sequence = sequences_.at(id);
  const auto held = scheduler_.held(id);
  if (!held || !store_.wants(held->tokens.size()) || !make_room(held->tokens.size())) return;
  auto state = engine_->save(held->slot);
  if (!state) {
    log::warning("runner: a slot could not be stored: {}", state.error().message);
    return;
  }
  store_.put(sequence.cache_group, {held->tokens.begin(), held->tokens.end()},
             std::make_shared<const std::vector<std::byte>>(std::move(*state)));
}

// The machine's memory is everybody's: what is stored gives way to what others need.
bool SchedulerThread::make_room(std::size_t tokens) {
  if (!options_.memory_available) return true;
  const engine::EngineInfo& info = engine_->info();
  const double per_token = static_cast<double>(info.kv_bytes) / info.context / info.width;
  const auto wanted = static_cast<std::int64_t>(per_token * static_cast<double>(tokens));
  const std::int64_t missing = wanted + options_.memory_left - options_.memory_available();
  if (missing <= 0) return true;
  store_.shrink(std::max<std::int64_t>(0, store_.bytes() - missing));
  return options_.memory_available() >= wanted + options_.memory_left;
}

Result<void> SchedulerThread::restore_cells(int slot, const Saved& saved) {
  if (auto restored = engine_->restore(slot, *saved.cells); !restored) return restored;
  engine_->truncate(slot, std::min(saved.length, engine_->length(slot)));
  if (engine_->length(slot) == saved.length) return {};
  return ::flotilla::fail(Code::Internal, "a slot's cells could not be cut");
}

}  // namespace flotilla::runner
