#include <cstdlib>

#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/llama_engine.h"
#include "runner/test_scheduler_thread.h"

// Drafts make an answer come sooner; they change nothing of it.
namespace flotilla::runner {
namespace {

class DraftsTest : public SchedulerThreadTest {
 protected:
  DraftsTest() {
    fake_.period = 5;
    fake_.draft_tokens_max = 16;
    // So long that a drafted token costs little beside it.
    fake_.per_step = std::chrono::microseconds(100);
    options_.limits.draft_tokens_max = 16;
  }
};

TEST_F(DraftsTest, AnswersAreThoseWithoutDraftsAndTakeFewerPasses) {
  const auto thread = make(4);
  for (SequenceId id = 1; id <= 12; ++id) ASSERT_TRUE(thread->start(sequence(id, 200)));
  for (SequenceId id = 1; id <= 12; ++id) {
    seen_.wait_over(id);
    const auto answer = seen_.answer(id);
    const auto plain = alone(sequence(id, 200));
    EXPECT_EQ(answer.text, plain.text);
    EXPECT_EQ(answer.tokens, plain.tokens);
    EXPECT_EQ(answer.finish, plain.finish);
  }
  seen_.wait([this] { return seen_.stats().running == 0; });
  EXPECT_EQ(seen_.stats().tokens, 12 * 200);
  EXPECT_GT(seen_.stats().accepted_tokens, 0);
  EXPECT_GE(seen_.stats().drafted_tokens, seen_.stats().accepted_tokens);
}

TEST_F(DraftsTest, StopsLimitsEndTokensAndGivenTokensHoldInTheMiddleOfADraft) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    seen_.wait([this] { return seen_.answers().clear(), true; });
    std::vector<SequenceStart> starts;
    for (SequenceId id = 1; id <= 8; ++id) {
      SequenceStart start = sequence(id, 1 + static_cast<int>(random.below(150)));
      start.answer.sampling.ignore_eos = random.chance(0.5);
      start.answer.sampling.temperature = random.chance(0.5) ? 0.0F : 1.0F;
      if (random.chance(0.3)) start.answer.sampling.frequency_penalty = 0.4F;
      if (random.chance(0.3)) start.answer.top_logprobs = 2;
      const auto whole = alone(start);
      // A stop string that its text will meet.
      const std::size_t at = random.below(whole.text.size() + 1);
      if (random.chance(0.5) && at < whole.text.size())
        start.answer.stops = {whole.text.substr(at, 1 + random.below(6))};
      const auto stopped = alone(start);
      if (random.chance(0.5) && !stopped.tokens.empty()) {
        const auto given = static_cast<std::ptrdiff_t>(random.below(stopped.tokens.size()));
        start.answer.given.assign(stopped.tokens.begin(), stopped.tokens.begin() + given);
      }
      starts.push_back(std::move(start));
    }
    faults_->aborted_passes = {3, 9, 20, 21};
    const auto thread = make(1 + static_cast<int>(random.below(4)));
    for (const SequenceStart& start : starts) ASSERT_TRUE(thread->start(start));
    thread->park(2);
    thread->unpark(2);
    for (const SequenceStart& start : starts) {
      seen_.wait_over(start.id);
      const auto answer = seen_.answer(start.id);
      const auto plain = alone(start);
      ASSERT_FALSE(answer.error);
      EXPECT_EQ(answer.text, plain.text) << start.id;
      EXPECT_EQ(answer.tokens, plain.tokens) << start.id;
      EXPECT_EQ(answer.finish, plain.finish) << start.id;
    }
  }
}

TEST_F(DraftsTest, WhatIsKeptOfASequenceIsWhatItAnswered) {
  options_.store_bytes_max = 1 << 20;
  const auto thread = make(2);
  for (const bool ended : {false, true}) {
    const SequenceId id = ended ? 11 : 1;
    SequenceStart first = sequence(id, ended ? 480 : 120);
    ASSERT_TRUE(thread->start(first));
    if (ended) {
      seen_.wait([&] { return seen_.answers()[id].tokens.size() > 60; });
      thread->end(id);
    } else {
      seen_.wait_over(id);
    }
    SequenceStart next = sequence(id + 1, 60);
    next.prompt = first.prompt;
    const auto answered = seen_.answer(id).tokens;
    next.prompt.insert(next.prompt.end(), answered.begin(), answered.begin() + 50);
    next.prompt.push_back('x');
    ASSERT_TRUE(thread->start(next));
    seen_.wait_over(next.id);
    EXPECT_EQ(seen_.answer(next.id).tokens, alone(next).tokens);
    EXPECT_GT(seen_.answer(next.id).cached_tokens, 20);
  }
}

engine::LoadedModel load_sample(int width, int draft_tokens_max) {
  const char* file = std::getenv("FLOTILLA_SAMPLE_MODEL");
  engine::LoadOptions options;
  options.model = file != nullptr ? file : ".cache/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  options.width = width;
  options.context = 256;
  options.draft_tokens_max = draft_tokens_max;
  auto loaded = engine::load_llama(options, {});
  if (!loaded) {
    ADD_FAILURE() << loaded.error().message;
    std::abort();
  }
  return std::move(*loaded);
}

TEST(RealDraftsTest, ARealModelsAnswersAreTheSameGreedyAndSampledAloneAndTogether) {
  SystemClock clock;
  constexpr std::string_view kTexts[] = {
      "red green blue red green blue red green blue red green",
      "Question: 1 + 1? Answer: 2. Question: 1 + 2? Answer: 3. Question: 1 + 3? Answer:",
      "The capital of France is Paris. The capital of Spain is Madrid. The capital of",
      "Once upon a time there was a"};
  for (const int width : {1, 8}) {
    std::vector<SequenceStart> starts;
    std::map<SequenceId, Collected::Answer> plain;
    for (const int draft_tokens_max : {0, 16}) {
      engine::LoadedModel model = load_sample(width, draft_tokens_max);
      if (!model.engine->info().exact_resume) {
        EXPECT_EQ(model.engine->info().draft_tokens_max, 0);
        EXPECT_NE(model.engine->info().draft_reason, "");
        GTEST_SKIP() << "the same bits are not promised: " << model.engine->info().numerics;
      }
      ASSERT_EQ(model.engine->info().draft_tokens_max, draft_tokens_max);
      if (starts.empty()) {
        for (SequenceId id = 1; id <= 8; ++id) {
          SequenceStart start;
          start.id = id;
          start.prompt = model.tokenizer->tokenize(kTexts[id % 4], true, false);
          start.answer.sampling.temperature = id <= 4 ? 0.0F : 0.8F;
          start.answer.sampling.seed = id;
          start.answer.sampling.ignore_eos = true;
          start.answer.tokens_max = width == 1 ? 40 : 48;
          starts.push_back(start);
        }
      }
      Collected seen;
      SchedulerOptions options;
      options.limits = {.width = width, .context = 256, .draft_tokens_max = draft_tokens_max};
      SchedulerThread thread(std::move(model), options, clock,
                             [&](StepReport report) { seen.take(std::move(report)); });
      for (SequenceStart start : starts) {
        if (draft_tokens_max > 0 && start.id % 3 == 0) {  // as another replica goes on
          const auto& tokens = plain[start.id].tokens;
          start.answer.given.assign(tokens.begin(), tokens.begin() + 11);
        }
        ASSERT_TRUE(thread.start(start));
      }
      for (const SequenceStart& start : starts) {
        seen.wait_over(start.id);
        const auto answer = seen.answer(start.id);
        if (draft_tokens_max == 0) {
          plain[start.id] = answer;
          continue;
        }
        std::vector<engine::Token> tokens;
        const auto& wanted = plain[start.id].tokens;
        if (start.id % 3 == 0) tokens.assign(wanted.begin(), wanted.begin() + 11);
        tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
        EXPECT_EQ(tokens, wanted) << "width " << width << " sequence " << start.id;
        EXPECT_TRUE(plain[start.id].text.ends_with(answer.text)) << start.id;
      }
      seen.wait([&] { return seen.stats().running == 0; });
      if (width == 1 && draft_tokens_max > 0) {
        EXPECT_GT(seen.stats().accepted_tokens, 0);
      }
    }
  }
}

}  // namespace
}  // namespace flotilla::runner
