#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/fake_engine.h"
#include "runner/scheduler_thread.h"

namespace flotilla::runner {

// The fake engine, which does one thing wrong when asked.
class FaultyEngine final : public engine::Engine {
 public:
  struct Faults {
    std::set<int> failed_passes;  // by number, from 1
    std::set<int> aborted_passes;
    std::set<int> full_passes;
    bool saves_fail = false;
    std::atomic<bool> restores_fail = false;
    int trims = 0;
    std::atomic<int> begun = 0;    // passes
    std::atomic<int> tokens = 0;   // in them
    std::atomic<int> aborts = 0;   // asked for
    std::atomic<int> aborted = 0;  // passes
  };

  FaultyEngine(std::unique_ptr<engine::Engine> inner, std::shared_ptr<Faults> faults)
      : inner_(std::move(inner)), faults_(std::move(faults)) {}

  const engine::EngineInfo& info() const override { return inner_->info(); }
  engine::StepOutcome decode(std::span<const engine::Chunk> chunks) override {
    ++pass_;
    if (faults_->full_passes.contains(pass_)) return engine::StepOutcome::NoSpace;
    if (faults_->failed_passes.contains(pass_)) {
      for (const engine::Chunk& chunk : chunks) inner_->truncate(chunk.slot, 0);
      return engine::StepOutcome::Failed;
    }
    if (faults_->aborted_passes.contains(pass_)) inner_->request_abort();
    ++faults_->begun;
    for (const engine::Chunk& chunk : chunks)
      faults_->tokens += static_cast<int>(chunk.tokens.size());
    const engine::StepOutcome outcome = inner_->decode(chunks);
    if (outcome == engine::StepOutcome::Aborted) ++faults_->aborted;
    return outcome;
  }
  std::span<const float> logits(std::size_t index) const override { return inner_->logits(index); }
  std::span<const float> logits(std::size_t index, std::size_t drafted) const override {
    return inner_->logits(index, drafted);
  }
  std::span<const float> vector(std::size_t index) const override { return inner_->vector(index); }
  int length(int slot) const override { return inner_->length(slot); }
  void truncate(int slot, int length) override { inner_->truncate(slot, length); }
  Result<void> move(int from, int to) override { return inner_->move(from, to); }
  Result<std::vector<std::byte>> save(int slot) const override {
    if (faults_->saves_fail) return flotilla::fail(Code::ResourceExhausted, "no memory");
    return inner_->save(slot);
  }
  Result<void> restore(int slot, std::span<const std::byte> state) override {
    if (faults_->restores_fail) return flotilla::fail(Code::Internal, "torn");
    return inner_->restore(slot, state);
  }
  std::string trim_memory() override {
    ++faults_->trims;
    return "nothing";
  }
  void request_abort() noexcept override {
    ++faults_->aborts;
    inner_->request_abort();
  }

 private:
  const std::unique_ptr<engine::Engine> inner_;
  const std::shared_ptr<Faults> faults_;
  int pass_ = 0;
};

// Gathers what the thread reports; a test waits for what it needs to see.
class Collected {
 public:
  struct Answer {
    std::string text;
    std::vector<engine::Token> tokens;
    std::optional<FinishReason> finish;
    std::optional<Error> error;
    int cached_tokens = 0;
    bool over() const { return finish || error; }
  };

  void take(StepReport report) {
    const std::lock_guard lock(mutex_);
    for (SequenceEvent& event : report.events) {
      Answer& answer = answers_[event.id];
      EXPECT_FALSE(answer.over()) << "an event after the last one of " << event.id;
      answer.text += event.text;
      answer.tokens.insert(answer.tokens.end(), event.tokens.begin(), event.tokens.end());
      answer.finish = event.finish;
      answer.cached_tokens = event.cached_tokens;
      answer.error = std::move(event.error);
    }
    stats_ = report.stats;
    changed_.notify_all();
  }

  template <class Condition>
  void wait(Condition condition) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), condition)) << "it did not come";
  }
  void wait_over(SequenceId id) {
    wait([&] { return answers_[id].over(); });
  }
  Answer answer(SequenceId id) {
    const std::lock_guard lock(mutex_);
    return answers_[id];
  }
  std::map<SequenceId, Answer>& answers() { return answers_; }  // inside wait()
  StepStats& stats() { return stats_; }                         // inside wait()

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<SequenceId, Answer> answers_;
  StepStats stats_;
};

// A scheduler thread on such an engine.
class SchedulerThreadTest : public testing::Test {
 protected:
  std::unique_ptr<SchedulerThread> make(int width, int context = 512) {
    engine::FakeOptions fake = fake_;
    fake.width = width;
    fake.context = context;
    engine::LoadedModel model = engine::make_fake_model(fake);
    model.engine = std::make_unique<FaultyEngine>(std::move(model.engine), faults_);
    SchedulerOptions options = options_;
    options.limits.width = width;
    options.limits.context = context;
    return std::make_unique<SchedulerThread>(std::move(model), options, clock_,
                                             [this](StepReport r) { seen_.take(std::move(r)); });
  }

  static SequenceStart sequence(SequenceId id, int tokens_max = 40) {
    SequenceStart start;
    start.id = id;
    for (int i = 0; i < 20 + static_cast<int>(id % 7); ++i) {
      start.prompt.push_back(static_cast<engine::Token>('a' + (id * 7 + i) % 26));
    }
    start.answer.sampling.seed = id;
    start.answer.sampling.ignore_eos = true;
    start.answer.tokens_max = tokens_max;
    return start;
  }

  // What the sequence answers when it is alone.
  Collected::Answer alone(const SequenceStart& start) {
    Collected seen;
    engine::FakeOptions fake;
    fake.width = 1;
    fake.context = 512;
    fake.period = fake_.period;
    SchedulerOptions options;
    options.limits.width = 1;
    options.limits.context = fake.context;
    SchedulerThread thread(engine::make_fake_model(fake), options, clock_,
                           [&seen](StepReport r) { seen.take(std::move(r)); });
    EXPECT_TRUE(thread.start(start));
    seen.wait_over(start.id);
    return seen.answer(start.id);
  }

  // Until a pass is under way that was not when `begun` was read.
  void wait_pass(int begun) {
    while (faults_->begun == begun) std::this_thread::yield();
  }

  SystemClock clock_;
  engine::FakeOptions fake_;
  SchedulerOptions options_;
  std::shared_ptr<FaultyEngine::Faults> faults_ = std::make_shared<FaultyEngine::Faults>();
  Collected seen_;
};

}  // namespace flotilla::runner
