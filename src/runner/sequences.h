#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "runner/load_meter.h"
#include "runner/scheduler_thread.h"

namespace flotilla::runner {

// Whoever hears of a sequence; lives until it has removed it.
class SequenceListener {
 public:
  virtual ~SequenceListener() = default;
  virtual void on_event(int choice, SequenceEvent event) = 0;
};

// The I/O thread's side of the scheduler thread: which sequence belongs to whom. Events of a step
// come in together; those of sequences that were removed meanwhile are dropped.
class Sequences {
 public:
  explicit Sequences(const Clock& clock) : clock_(clock) {}
  // Before the first start(); nullptr before the thread ends: whoever still holds sequences then
  // may remove them, to no effect.
  void attach(SchedulerThread* thread) { thread_ = thread; }

  // nullopt: the runner holds all that it can.
  std::optional<SequenceId> start(SequenceStart sequence, SequenceListener& listener, int choice,
                                  std::unique_ptr<engine::Grammar> grammar = nullptr);
  // Ends it if it is not over; no event follows.
  void remove(SequenceId id);
  void park(SequenceId id);
  void unpark(SequenceId id);

  void deliver(StepReport report);

  int held() const { return static_cast<int>(owners_.size()); }
  api::RunnerEvent load() { return meter_.event(held(), clock_.now()); }
  // Grows with everything that load() may show.
  std::uint64_t changes() const { return changes_; }

 private:
  struct Owner {
    SequenceListener* listener;
    int choice;
  };

  const Clock& clock_;
  SchedulerThread* thread_ = nullptr;
  std::unordered_map<SequenceId, Owner> owners_;
  SequenceId last_id_ = 0;
  LoadMeter meter_;
  std::uint64_t changes_ = 0;
};

}  // namespace flotilla::runner
