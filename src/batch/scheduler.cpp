#include "batch/scheduler.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "batch/draft_plan.h"
#include "batch/sequence.h"
#include "batch/slots.h"
#include "batch/step_cost.h"
#include "batch/step_plan.h"

namespace flotilla::batch {
namespace {

// A sequence that gave way resumes when this many cells are free beyond its own, so that it does
// not give way again at once.
constexpr int kResumeHeadroom = 64;
// A parked slot between decoding ones cuts every pass in two, so it is not kept for longer than
// this.
constexpr Duration kParkedBetweenMax = std::chrono::milliseconds(200);
// Drafted tokens of a pass while it is not known what they cost.
constexpr int kDraftFirst = 4;

bool earlier(const Sequence* a, const Sequence* b) { return a->order < b->order; }

}  // namespace

struct Scheduler::State {
  explicit State(const Limits& given);

  Sequence* find(SequenceId id) const;
  void evict(Sequence& sequence, StepPlan& plan);
  Sequence* parked_victim() const;
  int reserved(const Sequence& sequence) const;
  bool fits(const Sequence& newcomer) const;
  Sequence* next_for_slot() const;
  double done_alone_ms(const Sequence& sequence) const;

  void relieve_window(StepPlan& plan);
  void evict_long_parked(StepPlan& plan, Instant now);
  void admit(StepPlan& plan);
  void divide(StepPlan& plan);
  int draft(std::span<const StepRow> rows, int decoding);

  Limits limits;
  StepCost cost;
  Slots slots;
  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> sequences;
  std::vector<Sequence*> waiting;  // without a slot, parked ones too
  std::vector<int> to_clear;       // slots of ended sequences
  std::uint64_t submitted = 0;
  std::uint64_t plans = 0;
  std::uint64_t last_request = 0;  // whose prompt got the last slot
  double oldest_credit = 0;
  Drafts drafts;

  struct InFlight {
    SequenceId id = 0;
    bool decoding = false;
    PrefillRun run;
    int drafted = 0;  // beyond the run
  };
  std::vector<InFlight> in_flight;  // the pass that the engine computes
};

Scheduler::State::State(const Limits& given)
    : limits(given), cost(given.step_target, given.step_tokens_max), slots(given.width) {
  CHECK(limits.width >= 1 && limits.width <= 64);
  CHECK(limits.prefill_batch >= 1 && limits.context >= 2);
  CHECK(limits.step_tokens_max >= limits.width);
  if (limits.window == 0) limits.window = limits.width * limits.context;
  CHECK(limits.window >= limits.context);
  CHECK(!limits.whole_prompts || limits.step_tokens_max >= limits.context);
}

Sequence* Scheduler::State::find(SequenceId id) const {
  const auto it = sequences.find(id);
  return it == sequences.end() ? nullptr : it->second.get();
}

// Takes a sequence's slot; its cells go to host memory, if it has any.
void Scheduler::State::evict(Sequence& sequence, StepPlan& plan) {
  if (sequence.held > 0) {
    plan.actions.push_back(SaveSlot{.id = sequence.id, .slot = sequence.slot});
    sequence.saved = true;
  }
  sequence.reserve =
      std::min(limits.context, std::max(sequence.reserve, sequence.size() + kResumeHeadroom));
  sequence.evicted_by = plans;
  sequence.draft.reset();  // tables are for those that decode
  slots.leave(sequence);
  waiting.push_back(&sequence);
}

// The sequence that has been parked in its slot for longest.
Sequence* Scheduler::State::parked_victim() const {
  Sequence* victim = nullptr;
  for (Sequence* s : slots.holders()) {
    if (!s->parked) continue;
    if (victim == nullptr || s->parked_since < victim->parked_since) victim = s;
  }
  return victim;
}

int Scheduler::State::reserved(const Sequence& sequence) const {
  return std::max(sequence.reserve, sequence.size());
}

bool Scheduler::State::fits(const Sequence& newcomer) const {
  if (slots.used() == 0) return true;
  int cells = reserved(newcomer);
  for (const Sequence* s : slots.holders()) cells += reserved(*s);
  return cells <= limits.window;
}

// When a prompt would be ready, had it been alone since it came.
double Scheduler::State::done_alone_ms(const Sequence& sequence) const {
  double alone = cost.prefill_ms({.pos = sequence.held, .tokens = sequence.pending()});
  if (alone <= 0) alone = sequence.pending();
  return to_ms(sequence.arrival.time_since_epoch()) + alone;
}

// Who gets the next slot. Interrupted answers first, then prompts in the order of done_alone_ms():
// a short one overtakes a long one only while the long one has waited less than it has to compute.
// A prompt that would not be among the `prefill_batch` shortest leaves free slots to shorter ones
// that may come; the oldest of all is exempt, so its turn comes. A request of many sequences has
// half of the slots, and not two in a row, while another's waits.
Sequence* Scheduler::State::next_for_slot() const {
  std::vector<int> pending;
  std::uint64_t oldest = submitted;
  std::unordered_map<std::uint64_t, int> slots_of;
  for (const Sequence* s : slots.holders()) {
    ++slots_of[s->request];
    if (s->parked || s->decoding()) continue;
    pending.push_back(s->pending());
    oldest = std::min(oldest, s->order);
  }
  std::sort(pending.begin(), pending.end());
  const auto batch = static_cast<std::size_t>(limits.prefill_batch);
  const bool crowded = pending.size() >= batch;
  const int share = std::max(1, limits.width / 2);
  const auto had_its_share = [&](const Sequence& s) {
    if (s.request == 0) return false;
    const auto held = slots_of.find(s.request);
    return s.request == last_request || (held != slots_of.end() && held->second >= share);
  };
  Sequence* best = nullptr;
  double best_ms = 0;
  bool best_had = false;
  for (Sequence* s : waiting) {
    if (s->parked || s->evicted_by == plans) continue;
    if (s->decoding()) {
      if (best == nullptr || !best->decoding() || s->order < best->order) best = s;
      continue;
    }
    if (best != nullptr && best->decoding()) continue;
    if (crowded && s->pending() >= pending[batch - 1] && s->order > oldest) continue;
    const double ms = done_alone_ms(*s);
    const bool had = had_its_share(*s);
    const bool sooner =
        best == nullptr || ms < best_ms || (ms == best_ms && s->order < best->order);
    if (best == nullptr || had < best_had || (had == best_had && sooner)) {
      best = s;
      best_ms = ms;
      best_had = had;
    }
  }
  return best;
}

// Answers grow beyond what was reserved for them: the youngest gives way, parked ones first.
void Scheduler::State::relieve_window(StepPlan& plan) {
  for (;;) {
    const std::vector<Sequence*> holders = slots.holders();
    int cells = 0;
    for (const Sequence* s : holders) cells += s->size();
    if (holders.size() <= 1 || cells <= limits.window) return;
    Sequence* victim = parked_victim();
    if (victim == nullptr) victim = *std::max_element(holders.begin(), holders.end(), earlier);
    evict(*victim, plan);
  }
}

void Scheduler::State::evict_long_parked(StepPlan& plan, Instant now) {
  bool above = false;  // a decoding sequence in a higher slot
  const std::vector<Sequence*> holders = slots.holders();
  for (auto it = holders.rbegin(); it != holders.rend(); ++it) {
    if (!(*it)->parked) {
      above = above || (*it)->decoding();
    } else if (above && now - (*it)->parked_since >= kParkedBetweenMax) {
      evict(**it, plan);
    }
  }
}

void Scheduler::State::admit(StepPlan& plan) {
  std::vector<Sequence*> newcomers;
  while (Sequence* next = next_for_slot()) {
    bool room = !slots.full() && fits(*next);
    while (!room) {
      Sequence* victim = parked_victim();
      if (victim == nullptr) break;
      evict(*victim, plan);
      room = fits(*next);
    }
    if (!room) break;
    if (!next->decoding()) last_request = next->request;
    slots.enter(*next);
    std::erase(waiting, next);
    newcomers.push_back(next);
    // Cells are copied while everybody waits: one at a time is a pause that nobody notices.
    if (next->saved) break;
  }
  while (const std::optional<MoveSlot> move = slots.next_move()) {
    const Sequence& mover = *slots.at(move->to);
    if (mover.held > 0 && !mover.saved) plan.actions.push_back(*move);  // else nothing is there yet
  }
  for (Sequence* s : newcomers) {
    if (!std::exchange(s->saved, false)) continue;
    plan.actions.push_back(RestoreSlot{.id = s->id, .slot = s->slot});
  }
}

// Gives the pass its tokens and makes its chunks.
void Scheduler::State::divide(StepPlan& plan) {
  std::vector<StepRow> rows;
  for (int slot = 0; slot < slots.used(); ++slot) {
    Sequence& s = *slots.at(slot);
    CHECK(s.pending() > 0);  // else append() or end() is owed
    if (s.parked) continue;
    plan.decoding += s.decoding() ? 1 : 0;
    rows.push_back({.slot = slot,
                    .pending = s.pending(),
                    .decoding = s.decoding(),
                    .order = s.order,
                    .token_ms = cost.token_ms(s.held)});
  }
  if (limits.whole_prompts) {
    divide_whole(rows, limits.step_tokens_max);
  } else {
    oldest_credit = divide_step(rows, {.step_tokens_max = limits.step_tokens_max,
                                       .prefill_batch = limits.prefill_batch,
                                       .room = cost.room(plan.decoding),
                                       .decode_alone = cost.wants_decode_alone(plan.decoding),
                                       .oldest_credit = oldest_credit});
  }
  const int drafted = draft(rows, plan.decoding);
  double prefill_ms = 0;
  for (const StepRow& row : rows) {
    if (row.tokens == 0) continue;
    const Sequence& s = *slots.at(row.slot);
    CHECK(s.held + row.tokens <= limits.context);
    plan.chunks.push_back({.slot = row.slot,
                           .pos = s.held,
                           .tokens = std::span(s.tokens).subspan(s.held, row.tokens),
                           .wants_logits = row.tokens == row.pending,
                           .wants_vector = s.wants_vector && row.tokens == row.pending});
    plan.ids.push_back(s.id);
    const PrefillRun run{.pos = s.held, .tokens = row.tokens};
    in_flight.push_back({.id = s.id, .decoding = row.decoding, .run = run});
    if (!s.run.empty()) {
      plan.chunks.back().tokens = s.run;
      plan.chunks.back().drafted = in_flight.back().drafted = static_cast<int>(s.run.size()) - 1;
    }
    if (row.decoding) continue;
    plan.prefill_tokens += row.tokens;
    prefill_ms += cost.prefill_ms(run);
  }
  const std::chrono::duration<double, std::milli> expected(
      cost.decode_ms(plan.decoding) + prefill_ms + drafted * cost.draft_ms(plan.decoding));
  plan.expected = std::chrono::duration_cast<Duration>(expected);
}

// Gives decoding sequences their drafts, where the pass holds nothing else: a prompt's tokens are
// sure to be of use. Returns the drafted tokens.
int Scheduler::State::draft(std::span<const StepRow> rows, int decoding) {
  for (Sequence* s : slots.holders()) s->run.clear();
  if (limits.draft_tokens_max == 0 || decoding == 0 || cost.wants_decode_alone(decoding)) return 0;
  int cells = 0;
  for (const Sequence* s : slots.holders()) cells += s->size();
  const double draft_ms = cost.draft_ms(decoding);
  const DraftRules rules{
      .decoding = decoding,
      .decode_ms = cost.decode_ms(decoding),
      .draft_ms = draft_ms,
      .tokens_max =
          std::min({draft_ms > 0 ? limits.draft_tokens_max : kDraftFirst, limits.draft_tokens_max,
                    limits.step_tokens_max - decoding, limits.window - cells})};
  std::vector<DraftRow> drafts;
  std::vector<Sequence*> of;
  for (const StepRow& row : rows) {
    if (row.tokens > 0 && !row.decoding) return 0;
    Sequence& s = *slots.at(row.slot);
    if (row.tokens == 0 || !s.draft || !s.draft->has_guess()) continue;
    drafts.push_back({.rate = s.draft->rate(), .most = limits.context - s.size()});
    of.push_back(&s);
  }
  divide_drafts(drafts, rules);
  int drafted = 0;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    if (drafts[i].tokens == 0) continue;
    Sequence& s = *of[i];
    s.run = s.draft->guess(s.tokens, drafts[i].tokens);
    s.run.insert(s.run.begin(), s.tokens.back());
    drafted += drafts[i].tokens;
  }
  return drafted;
}

Scheduler::Scheduler(const Limits& limits) : state_(std::make_unique<State>(limits)) {}
Scheduler::~Scheduler() = default;

void Scheduler::submit(Submission submission, Instant now) {
  State& s = *state_;
  const int size = static_cast<int>(submission.prompt.size());
  CHECK(size >= 1 && size < s.limits.context && submission.held < size);
  CHECK(s.find(submission.id) == nullptr);
  auto sequence = std::make_unique<Sequence>();
  sequence->id = submission.id;
  sequence->order = s.submitted++;
  sequence->request = submission.request;
  sequence->arrival = now;
  sequence->prompt_size = submission.prompt.size();
  sequence->reserve = std::min(s.limits.context, size + std::max(submission.answer_reserve, 1));
  sequence->tokens = std::move(submission.prompt);
  sequence->held = submission.held;
  sequence->saved = submission.held > 0;
  sequence->wants_vector = submission.wants_vector;
  s.waiting.push_back(sequence.get());
  s.sequences.emplace(submission.id, std::move(sequence));
}

void Scheduler::end(SequenceId id) {
  State& s = *state_;
  Sequence* sequence = s.find(id);
  if (sequence == nullptr) return;
  if (sequence->slot != kNoSlot) {
    s.to_clear.push_back(sequence->slot);
    s.slots.leave(*sequence);
  } else {
    std::erase(s.waiting, sequence);
  }
  s.sequences.erase(id);
}

void Scheduler::park(SequenceId id) {
  if (Sequence* sequence = state_->find(id)) sequence->parked = true;
}

void Scheduler::unpark(SequenceId id) {
  Sequence* sequence = state_->find(id);
  if (sequence == nullptr) return;
  sequence->parked = false;
  sequence->parked_since = {};
}

StepPlan Scheduler::plan(Instant now) {
  State& s = *state_;
  std::erase_if(s.in_flight, [&](const auto& row) { return s.find(row.id) == nullptr; });
  CHECK(s.in_flight.empty());
  ++s.plans;
  for (Sequence* holder : s.slots.holders()) {
    if (holder->parked && holder->parked_since == Instant{}) holder->parked_since = now;
  }
  StepPlan plan;
  for (const int slot : s.to_clear) plan.actions.push_back(ClearSlot{.slot = slot});
  s.to_clear.clear();
  s.relieve_window(plan);
  s.evict_long_parked(plan, now);
  s.admit(plan);
  s.divide(plan);
  return plan;
}

void Scheduler::complete(Duration took) {
  State& s = *state_;
  CHECK(!s.in_flight.empty());
  int decoding = 0;
  int drafted = 0;
  std::vector<PrefillRun> prefill;
  for (const State::InFlight& row : s.in_flight) {
    if (row.decoding) {
      ++decoding;
      drafted += row.drafted;
    } else {
      prefill.push_back(row.run);
    }
    Sequence* sequence = s.find(row.id);
    if (sequence == nullptr) continue;
    sequence->held += row.run.tokens;
    sequence->checked = row.drafted > 0 ? 1 : 0;
  }
  s.in_flight.clear();
  s.drafts.drafted += drafted;
  if (drafted > 0) {
    s.cost.observe_drafts(decoding, drafted, took);
  } else {
    s.cost.observe(decoding, prefill, took);
  }
}

int Scheduler::roll_back(SequenceId id, int held) {
  State& s = *state_;
  std::erase_if(s.in_flight, [id](const auto& row) { return row.id == id; });
  Sequence* sequence = s.find(id);
  if (sequence == nullptr) return held;
  const int in_pass = sequence->size() + static_cast<int>(sequence->run.size());
  CHECK(sequence->slot != kNoSlot && held >= 0 && held <= in_pass);
  sequence->held = std::min(held, sequence->size() - 1);
  return sequence->held;
}

bool Scheduler::no_space() {
  State& s = *state_;
  s.in_flight.clear();
  int cells = 0;
  for (const Sequence* holder : s.slots.holders()) cells += holder->held;
  s.limits.window = cells;
  return s.slots.used() > 1;
}

void Scheduler::lost(SequenceId id) {
  Sequence* sequence = state_->find(id);
  if (sequence == nullptr) return;
  CHECK(sequence->slot == kNoSlot);
  sequence->saved = false;
  sequence->held = 0;
}

bool Scheduler::append(SequenceId id, engine::Token token) {
  State& s = *state_;
  Sequence* sequence = s.find(id);
  if (sequence == nullptr) return false;
  CHECK(sequence->pending() == 0);
  CHECK(sequence->size() < s.limits.context);
  auto& tokens = sequence->tokens;
  if (s.limits.draft_tokens_max > 0) {
    // Room for an answer as long as the reserve; the table of a longer one forgets.
    if (!sequence->draft) {
      const auto expected = std::max(tokens.size(), static_cast<std::size_t>(sequence->reserve));
      sequence->draft.emplace(tokens, expected);
    }
    tokens.push_back(token);
    sequence->draft->add(tokens);
  } else {
    tokens.push_back(token);
  }
  std::size_t& checked = sequence->checked;
  const bool drafted =
      checked > 0 && checked < sequence->run.size() && sequence->run[checked] == token;
  checked = drafted ? checked + 1 : 0;
  if (drafted) {
    ++sequence->held;
    ++s.drafts.accepted;
  }
  return drafted;
}

Scheduler::Drafts Scheduler::drafts() const { return state_->drafts; }

std::optional<Scheduler::Held> Scheduler::held(SequenceId id) const {
  const Sequence* sequence = state_->find(id);
  if (sequence == nullptr || sequence->slot == kNoSlot) return std::nullopt;
  return Held{
      .slot = sequence->slot,
      .tokens = std::span(sequence->tokens).first(static_cast<std::size_t>(sequence->held))};
}

Phase Scheduler::phase(SequenceId id) const {
  const Sequence* sequence = state_->find(id);
  if (sequence == nullptr) return Phase::Ended;
  if (sequence->parked) return Phase::Parked;
  if (sequence->slot == kNoSlot) return Phase::Waiting;
  return sequence->decoding() ? Phase::Decoding : Phase::Prefilling;
}

Load Scheduler::load() const {
  Load load;
  for (const auto& entry : state_->sequences) {
    switch (phase(entry.first)) {
      case Phase::Waiting: ++load.waiting; break;
      case Phase::Prefilling: ++load.prefilling; break;
      case Phase::Decoding: ++load.decoding; break;
      case Phase::Parked: ++load.parked; break;
      case Phase::Ended: break;
    }
  }
  return load;
}

std::int64_t Scheduler::prefill_backlog() const {
  std::int64_t tokens = 0;
  for (const auto& [id, sequence] : state_->sequences) {
    if (!sequence->parked && !sequence->decoding()) tokens += sequence->pending();
  }
  return tokens;
}

Duration Scheduler::step_target(int decoding) const {
  const std::chrono::duration<double, std::milli> target(state_->cost.target_ms(decoding));
  return std::chrono::duration_cast<Duration>(target);
}

}  // namespace flotilla::batch
