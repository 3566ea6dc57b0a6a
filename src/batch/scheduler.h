#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"

// A runner's brain: which sequence gets which tokens into the next forward pass. Pure: no thread,
// no engine, no clock of its own; the scheduler thread feeds it and does what its plans say.
//
// Every pass holds the next token of every decoding sequence and as much prefill as the step target
// leaves room for: by measured times, so that nobody's stream stalls because of another's prompt.
// The shortest remaining prompt goes first; the oldest one always has a quarter, so nothing
// starves.
namespace flotilla::batch {

using SequenceId = std::uint64_t;  // unique in a runner's life

struct Limits {
  int width = 8;              // slots: sequences that hold cells and decode together, 1-64
  int prefill_batch = 4;      // prompts prefilled together
  int context = 4096;         // most tokens of one sequence, prompt and answer
  int window = 0;             // cells of all slots together, >= context; 0 = width x context
  int step_tokens_max = 512;  // most tokens of one pass, >= width
  // Wanted length of a pass that decodes and prefills; 0 = max(50 ms, 2.7 decode-only passes).
  Duration step_target{};
  bool whole_prompts = false;  // a prompt is computed in one pass; step_tokens_max >= context
  int draft_tokens_max = 0;    // drafted tokens of one pass; 0 = no drafts
};

// A request's way in. `prompt` may end with tokens that an earlier replica had already answered.
struct Submission {
  SequenceId id = 0;
  std::vector<engine::Token> prompt{};  // 1 .. context - 1 tokens
  int answer_reserve = 512;  // cells set aside for the answer at admission: min(max_tokens, 512)
  int held = 0;  // of its first tokens, less than all, cells are saved: a RestoreSlot will come
  bool wants_vector = false;  // of the whole prompt; end() is owed then, there is no answer
  std::uint64_t request = 0;  // whose it is, among others of the same request; 0: it is alone
};

// What the engine must do before the pass, in this order, also when the pass is empty.
// Failures: SaveSlot: empty the slot and call lost(); the pass stays valid. MoveSlot, RestoreSlot:
// empty both slots, do the other actions but no pass, then roll_back() the action's id with 0 and
// all of the plan's ids with what their slots hold.
struct MoveSlot {  // keeps used slots dense
  SequenceId id = 0;
  int from = 0;
  int to = 0;
};
struct SaveSlot {  // cells -> host memory, then the slot is emptied
  SequenceId id = 0;
  int slot = 0;
};
struct RestoreSlot {  // host memory -> cells of an empty slot
  SequenceId id = 0;
  int slot = 0;
};
struct ClearSlot {  // its sequence has ended
  int slot = 0;
};
using SlotAction = std::variant<MoveSlot, SaveSlot, RestoreSlot, ClearSlot>;

// One forward pass. Spans point into the scheduler and are valid until its next call.
struct StepPlan {
  std::vector<SlotAction> actions;
  std::vector<engine::Chunk> chunks;  // sorted by slot
  std::vector<SequenceId> ids;        // ids[i] owns chunks[i]
  int decoding = 0;                   // chunks that continue an answer, with their drafts
  int prefill_tokens = 0;
  Duration expected{};  // by the times measured so far; 0 = not known yet

  bool empty() const { return chunks.empty(); }
};

enum class Phase { Waiting, Prefilling, Decoding, Parked, Ended };

struct Load {
  int waiting = 0;
  int prefilling = 0;
  int decoding = 0;
  int parked = 0;
};

// One thread owns it. Between a plan with chunks and its complete(), roll_back() of each of its
// ids, or no_space(), only end(), park(), unpark() and submit() may be called.
class Scheduler {
 public:
  explicit Scheduler(const Limits& limits);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void submit(Submission submission, Instant now);
  // Ends a sequence in any phase; its slot is cleared by the next plan. Unknown ids are ignored.
  void end(SequenceId id);
  // A slow reader: no more tokens until unpark(). Its slot may be saved away when others wait.
  void park(SequenceId id);
  void unpark(SequenceId id);

  // The next pass. No chunks: nothing can run (its actions count all the same).
  StepPlan plan(Instant now);

  // The pass of the last plan is done and took `took`: its cells are in the cache. Every sequence
  // whose chunk wanted logits now owes one call of append() or end() before the next plan.
  void complete(Duration took);
  // The pass of the last plan was aborted or failed: `held` cells are in sequence `id`'s slot.
  // Returns how many to keep: one less when they hold every token, since the last token's logits
  // are gone. The caller truncates the slot to that, and tells again if the backend left fewer.
  [[nodiscard]] int roll_back(SequenceId id, int held);
  // The pass of the last plan found no free cells, nothing has changed. The window is as small as
  // what is held, from then on: the youngest give way in the next plan and are resumed later.
  // False: only one sequence has a slot, and it must be ended.
  [[nodiscard]] bool no_space();
  // What SaveSlot saved is gone (or could not be saved): the sequence is computed anew from its
  // tokens.
  void lost(SequenceId id);

  // The answer's next token, which the next pass computes. Prompt and answer together have at most
  // `context` tokens: the caller ends a sequence that is full. True: the pass has drafted this very
  // token, so its cell is there, and its logits: the next append() or end() is owed at once. After
  // the last one the caller cuts the slot to what held() tells: the rest of the draft was wrong.
  bool append(SequenceId id, engine::Token token);

  // What a sequence has in its slot: cells of its first tokens. None without a slot. The span is
  // valid until the next call that changes something.
  struct Held {
    int slot = 0;
    std::span<const engine::Token> tokens;
  };
  std::optional<Held> held(SequenceId id) const;

  // Tokens of all passes so far that were guesses, and those of them that were right and used.
  struct Drafts {
    std::int64_t drafted = 0;
    std::int64_t accepted = 0;
  };
  Drafts drafts() const;

  Phase phase(SequenceId id) const;
  Load load() const;
  // Tokens not prefilled yet, over all sequences that wait or prefill.
  std::int64_t prefill_backlog() const;
  // How long a pass with `decoding` sequences and prefill is meant to take.
  Duration step_target(int decoding) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flotilla::batch
