#include "runner/scheduler_thread.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/log.h"

namespace flotilla::runner {
namespace {

constexpr Duration kIdleWait = std::chrono::seconds(1);
constexpr Duration kReportEvery = std::chrono::milliseconds(100);
// A sequence has at most a start, an end, cells from the disk and, while one pass runs, a park and
// an unpark on their way.
constexpr std::size_t kCommandsPerSequence = 5;

std::vector<engine::Token> end_tokens_of(const engine::Tokenizer& tokenizer) {
  std::vector<engine::Token> tokens;
  for (engine::Token token = 0; token < tokenizer.vocabulary(); ++token) {
    if (tokenizer.ends_generation(token)) tokens.push_back(token);
  }
  return tokens;
}

Error engine_failed(std::string_view what) {
  return Error{.code = Code::Internal,
               .message = "the engine failed (" + std::string(what) +
                          "); other requests go on, send this one again",
               .reason = "engine_failed"};
}

Error rules_too_slow(Duration limit) {
  return Error{.code = Code::InvalidArgument,
               .message = fmt::format("the tools, response_format or grammar took longer than {} s "
                                      "for one token; make them simpler",
                                      to_s(limit)),
               .reason = "grammar_too_complex"};
}

}  // namespace

SchedulerThread::SchedulerThread(engine::LoadedModel model, const SchedulerOptions& options,
                                 const Clock& clock, Report report)
    : options_(options),
      clock_(clock),
      report_(std::move(report)),
      engine_(std::move(model.engine)),
      tokenizer_(std::move(model.tokenizer)),
      end_tokens_(end_tokens_of(*tokenizer_)),
      commands_(static_cast<std::size_t>(options.sequences_max) * kCommandsPerSequence),
      scheduler_(options.limits),
      store_({.bytes_max = options.store_bytes_max,
              .can_cut = engine_->info().can_cut,
              .on_drop =
                  [this](const batch::CellStore::Key& key, const batch::Cells& cells,
                         batch::CellStore::Why why) {
                    if (disk_ != nullptr && why == batch::CellStore::Why::NoRoom)
                      disk_->put({.group = key.first, .tokens = key.second}, cells);
                  }}),
      breadcrumb_(options.breadcrumb ? options.breadcrumb
                                     : std::make_shared<platform::Breadcrumb>()),
      disk_(open_disk()),
      thread_([this] { run(); }) {}

SchedulerThread::~SchedulerThread() {
  commands_.close();
  engine_->request_abort();  // nobody waits for the pass under way
  thread_.join();
}

bool SchedulerThread::start(SequenceStart sequence, std::unique_ptr<engine::Grammar> grammar) {
  if (sequences_held_.fetch_add(1) >= options_.sequences_max) {
    sequences_held_.fetch_sub(1);
    return false;
  }
  push(Start{std::move(sequence), std::move(grammar)});
  return true;
}

// The command first: it is there when the aborted pass makes room for a look.
void SchedulerThread::end(SequenceId id) {
  push(End{id});
  if (pass_.leave(id)) engine_->request_abort();
}
void SchedulerThread::park(SequenceId id) { push(Park{id}); }
void SchedulerThread::unpark(SequenceId id) { push(Unpark{id}); }

void SchedulerThread::push(Command command) {
  const bool taken = commands_.try_push(std::move(command));
  CHECK(taken || commands_.closed());
}

void SchedulerThread::run() {
  while (!commands_.closed()) step();
}

// A step in order: what came in, what to do, the pass, its tokens, what went out. Nothing here
// reacts to a command at once; everything waits for its turn in the next step.
void SchedulerThread::step() {
  take_commands();
  const batch::StepPlan plan = scheduler_.plan(clock_.now());
  idle_ = plan.empty() && plan.actions.empty();
  changed_ = changed_ || !idle_;
  const bool passes = perform(plan) && !plan.empty();
  if (passes) {
    decode(plan);
    trim();
  }
  emit();
  count_step(passes);
}

// A step begins where the one before ended, or when the wait of an idle one did.
void SchedulerThread::count_step(bool passed) {
  const Instant now = clock_.now();
  if (passed) {
    passes_ += took_;
    outside_ += now - step_began_ - took_;
  }
  step_began_ = now;
}

void SchedulerThread::take_commands() {
  auto commands = idle_ ? commands_.wait_all(kIdleWait) : commands_.take_all();
  if (idle_) step_began_ = clock_.now();
  for (Command& command : commands) {
    changed_ = true;
    if (auto* start = std::get_if<Start>(&command)) take(std::move(*start));
    if (auto* end = std::get_if<End>(&command)) take(*end);
    if (auto* loaded = std::get_if<Loaded>(&command)) take(std::move(*loaded));
    if (auto* park = std::get_if<Park>(&command)) {
      scheduler_.park(park->id);
      mark_parked(park->id, true);
    }
    if (auto* unpark = std::get_if<Unpark>(&command)) {
      scheduler_.unpark(unpark->id);
      mark_parked(unpark->id, false);
    }
  }
  release_followers();
}

void SchedulerThread::take(Start command) {
  SequenceStart& start = command.sequence;
  const bool shaped = command.grammar != nullptr;
  std::optional<Answer> answer;
  if (!start.wants_vector)
    answer.emplace(start.answer, start.prompt, tokenizer_, end_tokens_, std::move(command.grammar));
  if (const auto finished = answer ? answer->finished() : std::nullopt) {
    events_.push_back({.id = start.id, .text = {}, .tokens = {}, .finish = finished, .error = {}});
    sequences_held_.fetch_sub(1);
    return;
  }
  const auto& given = start.answer.given;
  const int left = start.answer.tokens_max - static_cast<int>(given.size());
  const bool counts = start.counts_prompt && given.empty();
  const int prompt_tokens = counts ? static_cast<int>(start.prompt.size()) : 0;
  start.prompt.insert(start.prompt.end(), given.begin(), given.end());
  sequences_.emplace(start.id, Sequence{.request = std::move(start.request),
                                        .answer = std::move(answer),
                                        .cache_group = start.cache_group,
                                        .keep = start.keep,
                                        .shaped = shaped,
                                        .prompt_tokens = prompt_tokens,
                                        .first_pass = {}});
  enter({.id = start.id,
         .group = std::move(start.cache_group),
         .tokens = std::move(start.prompt),
         .answer_reserve = std::min(left, batch::Submission{}.answer_reserve),
         .wants_vector = start.wants_vector},
        options_.store_bytes_max > 0 && engine_->info().can_cut);
}

void SchedulerThread::take(End end) {
  const auto found = sequences_.find(end.id);
  if (found == sequences_.end()) return;
  if (found->second.keep) store_cells(end.id);
  finish(end.id);
}

// false: an action failed, so the pass is void and was taken back.
bool SchedulerThread::perform(const batch::StepPlan& plan) {
  bool sound = true;
  for (const batch::SlotAction& action : plan.actions) {
    const auto error = perform(action);
    if (!error) continue;
    log::error("runner: {}", error->message);
    sound = false;
  }
  if (!sound) take_back(plan);
  return sound;
}

std::optional<Error> SchedulerThread::perform(const batch::SlotAction& action) {
  if (const auto* clear = std::get_if<batch::ClearSlot>(&action)) {
    engine_->truncate(clear->slot, 0);
  } else if (const auto* save = std::get_if<batch::SaveSlot>(&action)) {
    auto state = engine_->save(save->slot);
    const int length = engine_->length(save->slot);
    engine_->truncate(save->slot, 0);
    if (state) {
      saved_[save->id] = {
          .cells = std::make_shared<const std::vector<std::byte>>(std::move(*state)),
          .length = length};
    } else {
      // Its tokens are all that is needed to compute the cells again; the pass stays whole.
      log::warning("runner: a slot could not be saved: {}", state.error().message);
      scheduler_.lost(save->id);
    }
  } else if (const auto* restore = std::get_if<batch::RestoreSlot>(&action)) {
    const auto found = saved_.find(restore->id);
    CHECK(found != saved_.end());
    const Saved saved = std::move(found->second);
    saved_.erase(found);
    const auto restored = restore_cells(restore->slot, saved);
    if (!restored) {
      engine_->truncate(restore->slot, 0);
      take_back(restore->id, restore->slot);
      sequences_.at(restore->id).cached_tokens = 0;
      return restored.error();
    }
  } else if (const auto* move = std::get_if<batch::MoveSlot>(&action)) {
    const auto moved = engine_->move(move->from, move->to);
    if (!moved) {
      engine_->truncate(move->from, 0);
      engine_->truncate(move->to, 0);
      take_back(move->id, move->to);
      return moved.error();
    }
  }
  return std::nullopt;
}

void SchedulerThread::note_pass(const batch::StepPlan& plan) {
  const Instant began = clock_.now();
  in_pass_.clear();
  for (const SequenceId id : plan.ids) {
    Sequence& sequence = sequences_.at(id);
    if (!sequence.first_pass) sequence.first_pass = began;
    if (sequence.prompt_ms == 0) ++sequence.prompt_passes;
    in_pass_.push_back(sequence.request);
  }
  breadcrumb_->begin_pass(in_pass_);
}

void SchedulerThread::decode(const batch::StepPlan& plan) {
  const Instant began = clock_.now();
  note_pass(plan);
  pass_.begin(plan.ids);
  const engine::StepOutcome outcome = engine_->decode(plan.chunks);
  pass_.end();
  breadcrumb_->end();
  took_ = clock_.now() - began;
  ++steps_;
  pass_counts_.add(to_ms(took_), plan.ids.size());
  switch (outcome) {
    case engine::StepOutcome::Done:
      scheduler_.complete(took_);
      sample(plan);
      return;
    case engine::StepOutcome::Aborted: take_back(plan); return;
    case engine::StepOutcome::NoSpace:
      if (!scheduler_.no_space()) {
        fail(*std::max_element(plan.ids.begin(), plan.ids.end()),
             Error{.code = Code::ResourceExhausted,
                   .message = "the runner's cells do not hold this request; shorten it or load the "
                              "model with a larger window",
                   .reason = "window_exhausted"});
      }
      return;
    case engine::StepOutcome::Failed:
      take_back(plan);
      for (const SequenceId id : plan.ids) fail(id, engine_failed("forward pass"));
      return;
  }
}

void SchedulerThread::sample(const batch::StepPlan& plan) {
  for (std::size_t i = 0; i < plan.chunks.size(); ++i) {
    if (!plan.chunks[i].wants_logits) continue;
    const SequenceId id = plan.ids[i];
    Sequence& sequence = sequences_.at(id);
    if (sequence.answer) {
      sample(id, sequence, plan.chunks[i], i);
    } else {
      note_prompt_done(id, sequence);
      take_vector(id, sequence, i);
    }
  }
}

// The answer's next token, and one more for each drafted one that it proves right. Each is chosen
// as it would be in a pass of its own, so drafts change no answer.
void SchedulerThread::sample(SequenceId id, Sequence& sequence, const engine::Chunk& chunk,
                             std::size_t index) {
  SequenceEvent event{.id = id, .text = {}, .tokens = {}, .finish = {}, .error = {}};
  std::optional<Error> error;
  for (std::size_t right = 0;; ++right) {
    breadcrumb_->begin_own(sequence.request);
    const Instant began = clock_.now();
    Answer::Step next = sequence.answer->next(engine_->logits(index, right));
    breadcrumb_->end();
    if (sequence.shaped && clock_.now() - began > options_.rules_max) {
      error = rules_too_slow(options_.rules_max);
      break;
    }
    if (next.counts) ++tokens_;
    if (sequence.prompt_ms == 0) note_prompt_done(id, sequence);
    event.text += next.text;
    event.tokens.insert(event.tokens.end(), next.tokens.begin(), next.tokens.end());
    std::ranges::move(next.logprobs, std::back_inserter(event.logprobs));
    event.stop = std::move(next.stop);
    event.finish = sequence.answer->finished();
    if (event.finish || !scheduler_.append(id, next.token)) break;
  }
  if (chunk.drafted > 0) {
    engine_->truncate(chunk.slot, static_cast<int>(scheduler_.held(id)->tokens.size()));
  }
  const bool over = event.finish.has_value();
  if (over || !event.text.empty()) {
    event.prompt_ms = sequence.prompt_ms;
    event.prompt_passes = sequence.prompt_passes;
    event.cached_tokens = sequence.cached_tokens;
    events_.push_back(std::move(event));
  }
  if (error) return fail(id, *error);
  if (!over) return;
  if (sequence.keep) store_cells(id);
  finish(id);
}

void SchedulerThread::note_prompt_done(SequenceId id, Sequence& sequence) {
  sequence.prompt_ms = to_ms(clock_.now() - *sequence.first_pass);
  prompt_tokens_ += sequence.prompt_tokens;
  cached_tokens_ += std::min(sequence.cached_tokens, std::exchange(sequence.prompt_tokens, 0));
  // What cannot be cut is of use to the next turn only as it is now: later it has moved on.
  if (!engine_->info().can_cut && sequence.keep) store_cells(id);
}

void SchedulerThread::take_vector(SequenceId id, const Sequence& sequence, std::size_t chunk) {
  const auto vector = engine_->vector(chunk);
  events_.push_back({.id = id,
                     .text = {},
                     .tokens = {},
                     .finish = FinishReason::Stop,
                     .error = {},
                     .prompt_ms = sequence.prompt_ms,
                     .prompt_passes = sequence.prompt_passes,
                     .cached_tokens = sequence.cached_tokens,
                     .vector = {vector.begin(), vector.end()}});
  finish(id);
}

void SchedulerThread::take_back(const batch::StepPlan& plan) {
  for (std::size_t i = 0; i < plan.chunks.size(); ++i) take_back(plan.ids[i], plan.chunks[i].slot);
}

void SchedulerThread::take_back(SequenceId id, int slot) {
  int held = engine_->length(slot);
  while (true) {
    const int keep = scheduler_.roll_back(id, held);
    engine_->truncate(slot, keep);
    if (engine_->length(slot) == keep) return;
    // Some caches cannot drop a part: they leave fewer cells than asked for.
    CHECK(engine_->length(slot) < held);
    held = engine_->length(slot);
  }
}

void SchedulerThread::fail(SequenceId id, const Error& error) {
  if (!sequences_.contains(id)) return;
  events_.push_back({.id = id, .text = {}, .tokens = {}, .finish = {}, .error = error});
  finish(id);
}

void SchedulerThread::finish(SequenceId id) {
  scheduler_.end(id);
  flight_.end(id);
  loading_.erase(id);
  saved_.erase(id);
  sequences_.erase(id);
  sequences_held_.fetch_sub(1);
}

void SchedulerThread::trim() {
  if (options_.trim_every <= 0 || tokens_ - tokens_at_trim_ < options_.trim_every) return;
  tokens_at_trim_ = tokens_;
  trimmed_ = engine_->trim_memory();
  ++trims_;
}

// Once a step with something to show; else as often as somebody may want to look, and before a
// rest.
void SchedulerThread::emit() {
  const Instant now = clock_.now();
  const std::int64_t on_disk = disk_ ? disk_->usage().bytes : 0;  // grows while nothing computes
  changed_ = changed_ || on_disk != disk_reported_;
  const bool due = idle_ || sequences_.empty() || now - reported_ >= kReportEvery;
  if (events_.empty() && !(changed_ && due)) return;
  reported_ = now;
  disk_reported_ = on_disk;
  changed_ = false;
  report_({.events = std::exchange(events_, {}), .stats = stats()});
}

StepStats SchedulerThread::stats() const {
  const batch::Load load = scheduler_.load();
  const batch::Scheduler::Drafts drafts = scheduler_.drafts();
  const engine::EngineInfo& info = engine_->info();
  std::int64_t used = 0;
  for (int slot = 0; slot < info.width; ++slot) used += engine_->length(slot);
  return {.step = steps_,
          .tokens = tokens_,
          .prompt_tokens = prompt_tokens_,
          .cached_tokens = cached_tokens_,
          .step_ms = to_ms(took_),
          .passes_ms = to_ms(passes_),
          .outside_ms = to_ms(outside_),
          .running = load.prefilling + load.decoding,
          .waiting = load.waiting + flight_.following() + static_cast<int>(loading_.size()),
          .parked = load.parked,
          .kv_free = static_cast<std::int64_t>(info.context) * info.width - used,
          .drafted_tokens = drafts.drafted,
          .accepted_tokens = drafts.accepted,
          .trims = trims_,
          .trimmed = trimmed_,
          .counts = pass_counts_,
          .stored_bytes = store_.bytes(),
          .stored = static_cast<int>(store_.size()),
          .disk_bytes = disk_reported_};
}

}  // namespace flotilla::runner
