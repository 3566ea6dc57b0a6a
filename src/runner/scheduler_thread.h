#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "api/runner_protocol.h"
#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/error.h"
#include "batch/prefix_store.h"
#include "batch/scheduler.h"
#include "batch/single_flight.h"
#include "engine/engine.h"
#include "platform/breadcrumb.h"
#include "runner/answer.h"
#include "runner/disk_store.h"
#include "runner/pass_watch.h"

namespace flotilla::runner {

using batch::SequenceId;

struct SequenceStart {
  SequenceId id = 0;
  std::string request = {};           // its id, for the breadcrumb
  std::vector<engine::Token> prompt;  // without AnswerSpec::given
  AnswerSpec answer;
  std::string cache_group = {};  // its cells are reused within it only
  bool keep = true;              // its cells, for whoever goes on from it
  bool wants_vector = false;     // of the prompt, instead of an answer
  bool counts_prompt = true;     // in StepStats; of all answers to one prompt the first does
};

// What a sequence has to show after a step. The last event of a sequence has `finish` or `error`.
struct SequenceEvent {
  SequenceId id = 0;
  std::string text;
  std::vector<engine::Token> tokens;  // Answer::Step's
  std::vector<engine::ChosenLogprob> logprobs = {};
  std::optional<FinishReason> finish;
  std::optional<Error> error;
  std::string stop = {};  // the stop string that ended it
  double prompt_ms = 0;   // from its first pass to its first token
  int prompt_passes = 0;  // in which its prompt was computed
  int cached_tokens = 0;  // of its prompt, that were not computed again
  std::vector<float> vector = {};
};

struct StepStats {
  std::uint64_t step = 0;   // passes so far
  std::int64_t tokens = 0;  // answered so far, over all sequences
  // Prompts so far, each when its first token had come: as usage has them, once for all answers
  // that a request wants to it. A resumed one counts where it began.
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  // of them, that were not computed again
  double step_ms = 0;              // the last pass
  double passes_ms = 0;            // all passes together
  double outside_ms = 0;           // of steps with a pass, all that is not the pass
  int running = 0;                 // prefilling or decoding
  int waiting = 0;
  int parked = 0;
  std::int64_t kv_free = 0;          // cells
  std::int64_t drafted_tokens = 0;   // guesses that passes have computed
  std::int64_t accepted_tokens = 0;  // of them, that were the answers'
  int trims = 0;                     // looks for memory to give back
  std::string trimmed = {};          // what the last one gave back: "heap"; empty: nothing
  api::PassCounts counts = {};
  std::int64_t stored_bytes = 0;  // by conversations that do not compute
  int stored = 0;
  std::int64_t disk_bytes = 0;  // of those for which memory has no room
};

struct StepReport {
  std::vector<SequenceEvent> events;
  StepStats stats;
};

struct SchedulerOptions {
  batch::Limits limits;
  int trim_every = 512;      // answered tokens between two looks for memory to give back; 0 = never
  int sequences_max = 4096;  // in all phases together
  // What the rules of an answer may take for one token, while all wait: longer ends it.
  Duration rules_max = std::chrono::seconds(1);
  std::int64_t store_bytes_max = 0;  // for cells of conversations that do not compute; 0 = none
  // Bytes that the machine can still give; no function: not looked at.
  std::function<std::int64_t()> memory_available = {};
  std::int64_t memory_left = 512LL << 20;  // of them, that the store leaves to others
  std::filesystem::path disk_folder = {};  // for what memory has no room for; empty = none
  std::int64_t disk_bytes_max = 0;
  std::shared_ptr<platform::Breadcrumb> breadcrumb = {};  // null: none is kept
};

// The body around batch::Scheduler and engine::Engine: the one thread that owns both. Commands come
// in by a bounded queue, what happened goes out once a step through `report`, which runs on this
// thread and must not wait.
class SchedulerThread {
 public:
  using Report = std::function<void(StepReport)>;

  SchedulerThread(engine::LoadedModel model, const SchedulerOptions& options, const Clock& clock,
                  Report report);
  // Drops every sequence and joins.
  ~SchedulerThread();
  SchedulerThread(const SchedulerThread&) = delete;
  SchedulerThread& operator=(const SchedulerThread&) = delete;

  // false: sequences_max are here already. `grammar`: of this sequence alone, AnswerSpec::given
  // accepted; may be null.
  bool start(SequenceStart sequence, std::unique_ptr<engine::Grammar> grammar = nullptr);
  // No event follows that was not on its way already. Unknown ids are ignored by all three. A pass
  // that only ended sequences wait for is aborted.
  void end(SequenceId id);
  void park(SequenceId id);
  void unpark(SequenceId id);

 private:
  struct Start {
    SequenceStart sequence;
    std::unique_ptr<engine::Grammar> grammar;
  };
  struct End {
    SequenceId id;
  };
  struct Park {
    SequenceId id;
  };
  struct Unpark {
    SequenceId id;
  };
  struct Loaded {  // from the disk
    SequenceId id;
    std::optional<CellFile> file;
  };
  using Command = std::variant<Start, End, Park, Unpark, Loaded>;

  struct Sequence {
    std::string request;
    std::optional<Answer> answer;  // none: its vector is wanted
    std::string cache_group;
    bool keep = true;
    bool shaped = false;    // rules of its own decide what it may say
    int prompt_tokens = 0;  // 0: resumed, or another counts it
    std::optional<Instant> first_pass;
    double prompt_ms = 0;
    int prompt_passes = 0;
    int cached_tokens = 0;
  };
  struct Saved {
    batch::Cells cells;
    int length = 0;  // cells to keep of them
  };

  std::unique_ptr<DiskStore> open_disk();
  void push(Command command);
  void run();
  void step();
  void count_step(bool passed);

  void take_commands();
  void take(Start command);
  void take(End end);
  void take(Loaded loaded);
  void enter(batch::Newcomer newcomer, bool may_follow);
  void begin(batch::Newcomer newcomer, std::optional<Saved> saved);
  void mark_parked(SequenceId id, bool parked);
  void release_followers();
  void store_cells(SequenceId id);
  bool make_room(std::size_t tokens);
  bool perform(const batch::StepPlan& plan);
  std::optional<Error> perform(const batch::SlotAction& action);
  Result<void> restore_cells(int slot, const Saved& saved);
  void decode(const batch::StepPlan& plan);
  void sample(const batch::StepPlan& plan);
  void sample(SequenceId id, Sequence& sequence, const engine::Chunk& chunk, std::size_t index);
  void note_prompt_done(SequenceId id, Sequence& sequence);
  void take_vector(SequenceId id, const Sequence& sequence, std::size_t chunk);
  void take_back(const batch::StepPlan& plan);
  void take_back(SequenceId id, int slot);
  void fail(SequenceId id, const Error& error);
  void finish(SequenceId id);
  void trim();
  void emit();
  void note_pass(const batch::StepPlan& plan);
  StepStats stats() const;

  const SchedulerOptions options_;
  const Clock& clock_;
  const Report report_;
  const std::unique_ptr<engine::Engine> engine_;
  const std::shared_ptr<const engine::Tokenizer> tokenizer_;
  const std::vector<engine::Token> end_tokens_;

  BoundedQueue<Command> commands_;
  std::atomic<int> sequences_held_{0};  // started and not dropped yet
  PassWatch pass_;

  // This thread's own.
  batch::Scheduler scheduler_;
  std::unordered_map<SequenceId, Sequence> sequences_;
  std::unordered_map<SequenceId, Saved> saved_;  // cells for sequences without a slot
  batch::CellStore store_;
  batch::SingleFlight flight_;
  std::unordered_map<SequenceId, batch::Newcomer> loading_;  // their cells, from the disk
  std::vector<SequenceEvent> events_;
  std::uint64_t steps_ = 0;
  api::PassCounts pass_counts_;
  std::int64_t tokens_ = 0;
  std::int64_t prompt_tokens_ = 0, cached_tokens_ = 0;  // StepStats'
  std::int64_t tokens_at_trim_ = 0;
  Duration took_{};
  Duration passes_{};
  Duration outside_{};
  Instant step_began_{};
  int trims_ = 0;
  std::string trimmed_;
  bool idle_ = false;  // nothing could run: wait for a command
  Instant reported_{};
  bool changed_ = false;  // since the last report
  std::int64_t disk_reported_ = 0;
  const std::shared_ptr<platform::Breadcrumb> breadcrumb_;
  std::vector<std::string_view> in_pass_;  // requests of the pass
  std::unique_ptr<DiskStore> disk_;        // null: none. Its thread pushes commands.

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace flotilla::runner
