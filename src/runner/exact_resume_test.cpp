#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/fake_engine.h"
#include "engine/llama_engine.h"
#include "runner/scheduler_thread.h"

// A sequence's tokens depend on its own history alone: not on who shares its passes, how its prompt
// was cut, how often it was parked, or after which token another replica went on with it. On every
// engine what is shown follows from the tokens; where the engine says exact_resume, so do the bits.
namespace flotilla::runner {
namespace {

class Answers {
 public:
  struct Shown {
    std::string text;
    std::vector<engine::Token> tokens;
    std::optional<FinishReason> finish;
  };

  void take(StepReport report) {
    const std::lock_guard lock(mutex_);
    for (SequenceEvent& event : report.events) {
      EXPECT_FALSE(event.error) << event.error->message;
      Shown& shown = shown_[event.id];
      shown.text += event.text;
      shown.tokens.insert(shown.tokens.end(), event.tokens.begin(), event.tokens.end());
      if (event.finish) shown.finish = event.finish;
    }
    changed_.notify_all();
  }
  void wait_tokens(SequenceId id, std::size_t count) {
    wait([&] { return shown_[id].finish || shown_[id].tokens.size() >= count; });
  }
  Shown wait_over(SequenceId id) {
    wait([&] { return shown_[id].finish.has_value(); });
    const std::lock_guard lock(mutex_);
    return shown_[id];
  }

 private:
  template <class Condition>
  void wait(Condition condition) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), condition)) << "it did not come";
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<SequenceId, Shown> shown_;
};

enum class Model { Synthetic, Real };

class ExactResumeTest : public testing::TestWithParam<Model> {
 protected:
  static constexpr int kContext = 256;

  engine::LoadedModel load(int width) {
    if (GetParam() == Model::Synthetic) {
      engine::FakeOptions options;
      options.width = width;
      options.context = kContext;
      return engine::make_fake_model(options);
    }
    const char* file = std::getenv("FLOTILLA_SAMPLE_MODEL");
    engine::LoadOptions options;
    options.model = file != nullptr ? file : ".cache/models/SmolLM2-135M-Instruct.Q4_1.gguf";
    options.width = width;
    options.context = kContext;
    auto loaded = engine::load_llama(options, {});
    if (!loaded) {
      ADD_FAILURE() << loaded.error().message;
      std::abort();
    }
    return std::move(*loaded);
  }

  static SequenceStart sequence(SequenceId id, Random& random) {
    SequenceStart start;
    start.id = id;
    const int size = 1 + static_cast<int>(random.below(random.chance(0.3) ? 80 : 20));
    for (int i = 0; i < size; ++i) {
      start.prompt.push_back(static_cast<engine::Token>(60 + random.below(150)));
    }
    start.answer.sampling.seed = random.next();
    start.answer.sampling.temperature = random.chance(0.5) ? 0.0F : 1.0F;
    start.answer.tokens_max = 8 + static_cast<int>(random.below(24));
    start.answer.stops = {"zqx", "\xC3\xA9t"};
    return start;
  }

  // What the tokens allow to be shown.
  std::string text_of(const SequenceStart& start, const Answers::Shown& shown,
                      const engine::LoadedModel& model) {
    AnswerSpec spec = start.answer;
    spec.given = shown.tokens;
    batch::StopText text(spec.stops);
    std::string out;
    for (const engine::Token token : shown.tokens)
      out += text.add(model.tokenizer->piece(token)).text;
    return out;
  }
};

TEST_P(ExactResumeTest, an_answer_depends_on_its_own_history_alone) {
  const bool real = GetParam() == Model::Real;  // slow: fewer of them
  const std::uint64_t seeds = real ? 1 : 20;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    SystemClock clock;
    std::vector<SequenceStart> starts;
    for (SequenceId id = 1; id <= 5; ++id) {
      starts.push_back(sequence(id, random));
      if (real) starts.back().answer.tokens_max = 6 + static_cast<int>(id);
    }

    engine::LoadedModel model = load(3);
    const engine::EngineInfo info = model.engine->info();
    const engine::LoadedModel texts{
        .engine = nullptr, .tokenizer = model.tokenizer, .chat_template = model.chat_template};
    Answers crowd;
    SchedulerOptions options;
    options.limits = {.width = 3,
                      .prefill_batch = 2,
                      .context = kContext,
                      .step_tokens_max = 3 + static_cast<int>(random.below(60)),
                      .step_target = std::chrono::milliseconds(1 + random.below(40))};
    {
      SchedulerThread thread(std::move(model), options, clock,
                             [&](StepReport report) { crowd.take(std::move(report)); });
      for (const SequenceStart& start : starts) ASSERT_TRUE(thread.start(start));
      for (int i = 0; i < 6; ++i) {
        const SequenceId id = 1 + random.below(starts.size());
        thread.park(id);
        const SequenceId other = 1 + random.below(starts.size());
        if (other != id) crowd.wait_tokens(other, 1 + random.below(6));
        thread.unpark(id);
      }
      for (const SequenceStart& start : starts) crowd.wait_over(start.id);
    }

    // Each one again, alone, and from a random token on.
    Answers alone;
    Answers rest;
    options.limits.width = 1;
    options.limits.step_tokens_max = 512;
    engine::LoadedModel second = load(1);
    SchedulerThread thread(std::move(second), options, clock, [&](StepReport report) {
      StepReport resumed = report;
      std::erase_if(report.events, [](const auto& event) { return event.id > 100; });
      std::erase_if(resumed.events, [](const auto& event) { return event.id <= 100; });
      alone.take(std::move(report));
      rest.take(std::move(resumed));
    });
    for (const SequenceStart& start : starts) {
      const Answers::Shown whole = crowd.wait_over(start.id);
      EXPECT_TRUE(whole.text.starts_with(text_of(start, whole, texts)) ||
                  text_of(start, whole, texts).starts_with(whole.text));
      SequenceStart resumed = start;
      resumed.id = 100 + start.id;
      const std::size_t cut = random.below(whole.tokens.size() + 1);
      resumed.answer.given.assign(whole.tokens.begin(), whole.tokens.begin() + cut);
      ASSERT_TRUE(thread.start(start));
      ASSERT_TRUE(thread.start(resumed));
      const Answers::Shown undisturbed = alone.wait_over(start.id);
      const Answers::Shown continued = rest.wait_over(resumed.id);
      if (!info.exact_resume) continue;
      EXPECT_EQ(undisturbed.tokens, whole.tokens) << start.id;
      EXPECT_EQ(undisturbed.text, whole.text) << start.id;
      std::vector<engine::Token> joined = resumed.answer.given;
      joined.insert(joined.end(), continued.tokens.begin(), continued.tokens.end());
      EXPECT_EQ(joined, whole.tokens) << start.id << " cut at " << cut;
      EXPECT_TRUE(whole.text.ends_with(continued.text));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, ExactResumeTest, testing::Values(Model::Synthetic, Model::Real),
                         [](const auto& model) {
                           return model.param == Model::Real ? "Real" : "Synthetic";
                         });

}  // namespace
}  // namespace flotilla::runner
