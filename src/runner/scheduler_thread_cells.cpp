#include <algorithm>
#include <functional>
#include <utility>

#include "base/log.h"
#include "runner/scheduler_thread.h"

// What the scheduler thread computes only once: cells of sequences that are over, and of such that
// are under way with the same beginning.
namespace flotilla::runner {

constexpr int kDiskGain = 64;  // tokens that a file must save beyond what memory has

std::unique_ptr<DiskStore> SchedulerThread::open_disk() {
  if (options_.disk_folder.empty() || options_.disk_bytes_max <= 0) return nullptr;
  auto disk = DiskStore::open({.folder = options_.disk_folder,
                               .bytes_max = options_.disk_bytes_max,
                               .can_cut = engine_->info().can_cut},
                              [this](std::uint64_t id, std::optional<CellFile> file) {
                                push(Loaded{.id = id, .file = std::move(file)});
                              });
  if (disk) return std::move(*disk);
  log::warning("runner: no conversation is kept on disk: {}", disk.error().message);
  return nullptr;
}

// Into the scheduler, with the cells that are in store; behind another sequence that computes what
// both need; or to the disk first.
void SchedulerThread::enter(batch::Newcomer newcomer, bool may_follow) {
  const auto match = store_.find(newcomer.group, newcomer.tokens);
  const auto file = disk_ ? disk_->find(newcomer.group, newcomer.tokens) : std::nullopt;
  const int reusable = std::max(match ? match->length : 0, file ? file->length : 0);
  if (may_follow && flight_.follow(newcomer, reusable)) return;
  if (file && file->length >= (match ? match->length : 0) + kDiskGain) {
    const SequenceId id = newcomer.id;
    loading_.emplace(id, std::move(newcomer));
    return disk_->load(file->file, id);
  }
  if (!match) return begin(std::move(newcomer), std::nullopt);
  begin(std::move(newcomer), Saved{.cells = match->value, .length = match->length});
}

void SchedulerThread::begin(batch::Newcomer newcomer, std::optional<Saved> saved) {
  const int held = saved ? saved->length : 0;
  Sequence& sequence = sequences_.at(newcomer.id);
  sequence.cached_tokens = held;
  if (saved) saved_[newcomer.id] = std::move(*saved);
  flight_.lead(newcomer);
  scheduler_.submit({.id = newcomer.id,
                     .prompt = std::move(newcomer.tokens),
                     .answer_reserve = newcomer.answer_reserve,
                     .held = held,
                     .wants_vector = newcomer.wants_vector,
                     .request = std::hash<std::string>{}(sequence.request)},
                    clock_.now());
  if (newcomer.parked) scheduler_.park(newcomer.id);
}

// Its cells have come from the disk, or the file was of no use.
void SchedulerThread::take(Loaded loaded) {
  const auto found = loading_.find(loaded.id);
  if (found == loading_.end()) return;  // it ended meanwhile
  batch::Newcomer newcomer = std::move(found->second);
  loading_.erase(found);
  if (!loaded.file) return enter(std::move(newcomer), false);
  const auto most = std::span(newcomer.tokens).first(newcomer.tokens.size() - 1);
  CellFileHead& head = loaded.file->head;
  const std::size_t shared = batch::common_prefix(head.tokens, most);
  const bool usable = shared == head.tokens.size() || engine_->info().can_cut;
  if (!usable || head.group != newcomer.group || shared == 0) {
    return begin(std::move(newcomer), std::nullopt);
  }
  const auto cells = std::make_shared<const std::vector<std::byte>>(std::move(loaded.file->cells));
  if (make_room(head.tokens.size())) {
    store_.put({std::move(head.group), std::move(head.tokens)}, cells,
               static_cast<std::int64_t>(cells->size()));
  }
  begin(std::move(newcomer), Saved{.cells = cells, .length = static_cast<int>(shared)});
}

void SchedulerThread::mark_parked(SequenceId id, bool parked) {
  flight_.park(id, parked);
  if (const auto found = loading_.find(id); found != loading_.end()) found->second.parked = parked;
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
  const auto bytes = static_cast<std::int64_t>(state->size());
  store_.put({sequence.cache_group, {held->tokens.begin(), held->tokens.end()}},
             std::make_shared<const std::vector<std::byte>>(std::move(*state)), bytes);
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
