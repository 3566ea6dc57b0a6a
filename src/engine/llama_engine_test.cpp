#include "engine/llama_engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <sys/types.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/random.h"
#include "engine/chat.h"
#include "engine/ggml_hook.h"
#include "engine/test_model.h"

namespace flotilla::engine {
namespace {

using Logits = std::vector<float>;

class LlamaEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int slot = 0; slot < engine_.info().width; ++slot) engine_.truncate(slot, 0);
  }

  std::vector<Token> tokens_of(std::string_view text) const {
    return model_.tokenizer->tokenize(text, false, false);
  }
  // Distinct words for distinct `kind`s.
  static std::vector<Token> some_tokens(int count, int kind = 0) {
    std::vector<Token> tokens;
    for (int i = 0; i < count; ++i) tokens.push_back(1000 + (i * 37 + kind * 1009) % 40'000);
    return tokens;
  }

  // Appends tokens to a slot, in one pass; the logits of the last.
  static Logits append(Engine& engine, int slot, std::span<const Token> tokens) {
    const Chunk chunk{slot, engine.length(slot), tokens, true};
    EXPECT_EQ(engine.decode({&chunk, 1}), StepOutcome::Done);
    const auto row = engine.logits(0);
    return {row.begin(), row.end()};
  }
  Logits append(int slot, std::span<const Token> tokens) { return append(engine_, slot, tokens); }

  static Token greedy(std::span<const float> logits) {
    return static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
  }
  std::string answer(int slot, std::vector<Token> prompt, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      const Token token = greedy(append(slot, prompt));
      if (model_.tokenizer->ends_generation(token)) break;
      text += model_.tokenizer->piece(token);
      prompt = {token};
    }
    return text;
  }

  static float difference(const Logits& a, const Logits& b) {
    float largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
  }

  LoadedModel& model_ = sample_model();
  Engine& engine_ = *model_.engine;
};

// Stock attention computes a lone token, 2-63 tokens and 64 or more by different code, partly with
// 16-bit sums: the same tokens' logits differ by up to 0.7 between them. A wrong cell or position
// changes them by many times this.
constexpr float kRegimes = 1.0F;

TEST_F(LlamaEngineTest, TellsWhatWasLoaded) {
  const EngineInfo& info = engine_.info();
  EXPECT_EQ(info.quantization, "Q4_1");
  EXPECT_NE(info.description.find("llama"), std::string::npos) << info.description;
  EXPECT_EQ(info.vocabulary, 49'152);
  EXPECT_EQ(info.context_trained, 8192);
  EXPECT_EQ(info.context, 256);
  EXPECT_EQ(info.width, 8);
  EXPECT_EQ(info.width_reason, "");
  EXPECT_EQ(info.step_tokens_max, 512);
  EXPECT_EQ(info.model_bytes, 96'576'768);
  EXPECT_EQ(info.kv_bytes, 8LL * 256 * 23'040);  // 30 layers x 2 x 3 heads x 64 x 2 bytes a cell
  EXPECT_NE(info.numerics.find("/kv f16"), std::string::npos) << info.numerics;
  EXPECT_EQ(info.exact_resume, register_kernels().empty());
}

TEST_F(LlamaEngineTest, StockKernelsAreThereForTheAskingAndSayTheSame) {
  LoadOptions options = sample_options();
  options.kernels = Kernels::Stock;
  options.width = 2;
  auto stock = load_llama(options, {});
  ASSERT_TRUE(stock) << stock.error().message;
  EXPECT_EQ(stock->engine->info().numerics.find("stock"), 0U) << stock->engine->info().numerics;
  EXPECT_FALSE(stock->engine->info().exact_resume);
  const std::vector<Token> prompt = tokens_of("The capital of France is");
  // Both are off by what their roundings cost.
  EXPECT_LT(difference(append(*stock->engine, 0, prompt), append(0, prompt)), 2 * kRegimes);
}

// One sequence as a schedule meets it, and what it must compute.
struct Story {
  std::vector<Token> tokens;
  std::vector<Logits> after;  // [token], empty where none were asked for
  int slot = -1;
};

// Whatever shares a pass with a sequence, however it is cut, wherever its cells are, and whether it
// was moved, saved or taken back on the way: each token's logits have the same bits.
TEST_F(LlamaEngineTest, LogitsAreBitIdenticalInEverySchedule) {
  if (!engine_.info().exact_resume) GTEST_SKIP() << "not promised: " << engine_.info().numerics;
  Random random(11);
  std::vector<Story> stories(kSanitized ? 3 : 5);
  for (std::size_t i = 0; i < stories.size(); ++i) {
    Story& story = stories[i];
    story.tokens = some_tokens(20 + static_cast<int>(random.below(100)), static_cast<int>(i));
    story.after.resize(story.tokens.size());
    // Alone: a third at once, the rest token by token.
    const std::size_t first = story.tokens.size() / 3;
    story.after[first - 1] = append(0, std::span(story.tokens).first(first));
    for (std::size_t at = first; at < story.tokens.size(); ++at) {
      story.after[at] = append(0, std::span(story.tokens).subspan(at, 1));
    }
    engine_.truncate(0, 0);
  }
  const auto length_of = [&](const Story& story) {
    return story.slot < 0 ? 0 : engine_.length(story.slot);
  };
  const auto free_slot = [&] {
    std::vector<int> free;
    for (int slot = 0; slot < 8; ++slot) {
      if (std::ranges::none_of(stories, [slot](const Story& s) { return s.slot == slot; })) {
        free.push_back(slot);
      }
    }
    return free[random.below(free.size())];
  };
  const int steps = kSanitized ? 30 : 90;
  int compared = 0;
  for (int step = 0; step < steps; ++step) {
    std::vector<Story*> now;
    for (Story& story : stories) {
      if (story.slot < 0) story.slot = free_slot();
      const int held = length_of(story);
      const auto end = static_cast<int>(story.tokens.size());
      if (held == end || random.chance(0.05)) {
        engine_.truncate(story.slot, static_cast<int>(random.below(std::uint64_t(held) + 1)));
      } else if (held > 0 && random.chance(0.1)) {
        const int to = free_slot();
        if (random.chance(0.5)) {
          ASSERT_TRUE(engine_.move(story.slot, to));
        } else {
          const auto state = engine_.save(story.slot);
          engine_.truncate(story.slot, 0);
          ASSERT_TRUE(state && engine_.restore(to, *state));
        }
        story.slot = to;
      }
      if (length_of(story) < end && random.chance(0.7)) now.push_back(&story);
    }
    std::ranges::sort(now, {}, [](const Story* story) { return story->slot; });
    std::vector<Chunk> chunks;
    for (const Story* story : now) {
      const auto at = static_cast<std::size_t>(length_of(*story));
      const std::size_t left = story->tokens.size() - at;
      const std::size_t count = random.chance(0.6) ? 1 : 1 + random.below(left);
      chunks.push_back({.slot = story->slot,
                        .pos = static_cast<int>(at),
                        .tokens = std::span(story->tokens).subspan(at, count),
                        .wants_logits = true});
    }
    if (chunks.empty()) continue;
    ASSERT_EQ(engine_.decode(chunks), StepOutcome::Done);
    for (std::size_t i = 0; i < now.size(); ++i) {
      const Logits& expected = now[i]->after[static_cast<std::size_t>(length_of(*now[i])) - 1];
      if (expected.empty()) continue;
      const auto row = engine_.logits(i);
      ASSERT_TRUE(std::ranges::equal(row, expected))
          << "step " << step << " slot " << now[i]->slot << " length " << length_of(*now[i])
          << " differs by " << difference({row.begin(), row.end()}, expected);
      ++compared;
    }
  }
  EXPECT_GT(compared, kSanitized ? 10 : 80);
}

TEST_F(LlamaEngineTest, DraftedTokensHaveTheLogitsOfPassesOfTheirOwn) {
  if (!engine_.info().exact_resume) GTEST_SKIP() << "not promised: " << engine_.info().numerics;
  EXPECT_EQ(engine_.info().draft_tokens_max, 0) << "none were asked for";
  LoadOptions options = sample_options();
  options.draft_tokens_max = 20;
  auto loaded = load_llama(options, {});
  ASSERT_TRUE(loaded) << loaded.error().message;
  Engine& engine = *loaded->engine;
  ASSERT_EQ(engine.info().draft_tokens_max, 20);
  EXPECT_EQ(engine.info().numerics, engine_.info().numerics);
  // Eight sequences decode together, four of them with a draft, one of which is wrong from its
  // second token on.
  constexpr int kDrafted[] = {0, 16, 0, 1, 2, 0, 1, 0};
  std::vector<std::vector<Token>> texts;
  std::vector<std::vector<Logits>> alone(8);
  for (int slot = 0; slot < 8; ++slot) {
    texts.push_back(some_tokens(40 + 5 * slot, slot));
    const auto prompt = std::span(texts.back()).first(20);
    append(slot, prompt);
    append(engine, slot, prompt);
    for (std::size_t at = 20; at < 40; ++at)
      alone[slot].push_back(append(slot, std::span(texts.back()).subspan(at, 1)));
  }
  for (int from = 20; from + 17 < 40; ++from) {
    std::vector<std::vector<Token>> runs;
    std::vector<Chunk> chunks;
    for (int slot = 0; slot < 8; ++slot) {
      const auto first = texts[slot].begin() + from;
      runs.emplace_back(first, first + 1 + kDrafted[slot]);
      if (slot == 4) runs.back()[2] = 17;
    }
    for (int slot = 0; slot < 8; ++slot)
      chunks.push_back({slot, from, runs[slot], true, false, kDrafted[slot]});
    ASSERT_EQ(engine.decode(chunks), StepOutcome::Done);
    for (int slot = 0; slot < 8; ++slot) {
      const int right = slot == 4 ? 1 : kDrafted[slot];
      for (int row = 0; row <= right; ++row) {
        ASSERT_TRUE(std::ranges::equal(engine.logits(slot, row), alone[slot][from - 20 + row]))
            << "slot " << slot << " from " << from << " row " << row;
      }
      engine.truncate(slot, from + 1);
      ASSERT_EQ(engine.length(slot), from + 1);
    }
  }
}

TEST_F(LlamaEngineTest, ContinuesASentence) {
  const std::vector<Token> prompt = tokens_of("The capital of France is");
  const std::string text = answer(0, prompt, 8);
  EXPECT_NE(text.find("Paris"), std::string::npos) << text;
  engine_.truncate(0, 0);
  EXPECT_EQ(answer(0, prompt, 8), text);
}

TEST_F(LlamaEngineTest, AnswersAChat) {
  const ChatMessage message{.role = "user", .content = "The capital of France is"};
  const auto prompt = model_.chat_template->render({&message, 1}, {});
  ASSERT_TRUE(prompt);
  const std::string text = answer(0, prompt->prompt, 24);
  RecordProperty("answer", text);
  EXPECT_GT(text.size(), 20U);
}

TEST_F(LlamaEngineTest, EightSlotsTogetherAnswerLikeEachAlone) {
  std::vector<Logits> alone;
  std::vector<std::vector<Token>> prompts;
  const std::vector<Token> next = {1234};
  for (int slot = 0; slot < 8; ++slot) {
    prompts.push_back(some_tokens(6 + 3 * slot, slot));
    append(0, prompts.back());
    alone.push_back(append(0, next));
    engine_.truncate(0, 0);
  }
  // All prompts in one pass, of unequal lengths, then one token each.
  std::vector<Chunk> chunks;
  for (int slot = 0; slot < 8; ++slot) chunks.push_back({slot, 0, prompts[slot], false});
  ASSERT_EQ(engine_.decode(chunks), StepOutcome::Done);
  for (Chunk& chunk : chunks) chunk = {chunk.slot, engine_.length(chunk.slot), next, true};
  ASSERT_EQ(engine_.decode(chunks), StepOutcome::Done);
  for (int slot = 0; slot < 8; ++slot) {
    const auto row = engine_.logits(slot);
    EXPECT_LT(difference({row.begin(), row.end()}, alone[slot]), kRegimes) << "slot " << slot;
    EXPECT_GT(difference(alone[slot], alone[(slot + 1) % 8]), 3 * kRegimes);
  }
}

TEST_F(LlamaEngineTest, DecodingBesideAPromptGivesEachItsOwnLogits) {
  const std::vector<Token> prompt = some_tokens(40);
  const std::vector<Token> next = {77};
  const std::vector<Token> other = some_tokens(70, 1);
  append(0, prompt);
  const Logits expected = append(0, next);
  const Logits expected_other = append(1, other);
  engine_.truncate(0, 40);
  engine_.truncate(1, 0);
  const Chunk chunks[] = {{0, 40, next, true}, {1, 0, other, true}};
  ASSERT_EQ(engine_.decode(chunks), StepOutcome::Done);
  const auto first = engine_.logits(0);
  const auto second = engine_.logits(1);
  EXPECT_LT(difference({first.begin(), first.end()}, expected), kRegimes);
  EXPECT_LT(difference({second.begin(), second.end()}, expected_other), kRegimes);
}

TEST_F(LlamaEngineTest, TruncationGoesBackExactly) {
  const std::vector<Token> prompt = some_tokens(30);
  const std::vector<Token> next = {500};
  const std::vector<Token> wrong = some_tokens(9, 3);
  append(0, prompt);
  const Logits expected = append(0, next);
  engine_.truncate(0, 30);
  append(0, wrong);
  EXPECT_EQ(engine_.length(0), 39);
  engine_.truncate(0, 30);
  EXPECT_EQ(difference(append(0, next), expected), 0);
}

TEST_F(LlamaEngineTest, MovedCellsGoOnBitForBit) {
  const std::vector<Token> next = {500};
  append(5, some_tokens(30));
  const Logits expected = append(5, next);
  engine_.truncate(5, 30);
  append(0, some_tokens(50, 2));
  ASSERT_TRUE(engine_.move(5, 1));
  EXPECT_EQ(engine_.length(5), 0);
  EXPECT_EQ(engine_.length(1), 30);
  EXPECT_EQ(difference(append(1, next), expected), 0);
  ASSERT_TRUE(engine_.move(6, 7));  // nothing into nothing
}

TEST_F(LlamaEngineTest, SavedCellsGoOnBitForBitInAnotherSlotAndAnotherEngine) {
  const std::vector<Token> next = {500};
  append(2, some_tokens(30));
  const auto state = engine_.save(2);
  ASSERT_TRUE(state);
  const Logits expected = append(2, next);
  ASSERT_TRUE(engine_.restore(3, *state));
  EXPECT_EQ(engine_.length(3), 30);
  EXPECT_EQ(difference(append(3, next), expected), 0);

  auto other = load_llama(sample_options(), {});
  ASSERT_TRUE(other) << other.error().message;
  ASSERT_TRUE(other->engine->restore(0, *state));
  EXPECT_EQ(difference(append(*other->engine, 0, next), expected), 0);

  LoadOptions options = sample_options();
  options.kv_type = KvType::Q8_0;
  options.width = 1;
  auto third = load_llama(options, {});
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_LT(third->engine->info().kv_bytes, 256 * 23'040);
  const auto refused = third->engine->restore(0, *state);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::InvalidArgument);
}

TEST_F(LlamaEngineTest, DamagedStatesAreRefusedAndTouchNobody) {
  const std::vector<Token> next = {500};
  append(0, some_tokens(12));
  auto state = *engine_.save(0);
  const Logits expected = append(0, next);
  engine_.truncate(0, 12);
  for (std::size_t at = 0; at < state.size(); at += state.size() / 50 + 1) {
    state[at] ^= std::byte{4};
    EXPECT_FALSE(engine_.restore(1, state)) << at;
    state[at] ^= std::byte{4};
    EXPECT_FALSE(engine_.restore(1, std::span(state).first(at))) << at;
    ASSERT_EQ(engine_.length(1), 0);
  }
  EXPECT_EQ(difference(append(0, next), expected), 0);
  ASSERT_TRUE(engine_.restore(1, state));
  const auto empty = engine_.save(7);
  ASSERT_TRUE(empty);
  ASSERT_TRUE(engine_.restore(6, *empty));
  EXPECT_EQ(engine_.length(6), 0);
}

TEST_F(LlamaEngineTest, AnAbortBeforeThePassChangesNothing) {
  const std::vector<Token> prompt = some_tokens(20);
  const Logits expected = append(0, prompt);
  engine_.truncate(0, 0);
  engine_.request_abort();
  const Chunk chunk{0, 0, prompt, true};
  EXPECT_EQ(engine_.decode({&chunk, 1}), StepOutcome::Aborted);
  EXPECT_EQ(engine_.length(0), 0);
  EXPECT_EQ(difference(append(0, prompt), expected), 0);
}

TEST_F(LlamaEngineTest, AnAbortedPassIsContinuedFromWhatItLeft) {
  // Two parts, since slots share one with equal counts only: 4 tokens of both, then 56 of slot 1.
  const SystemClock clock;
  const std::vector<Token> few = some_tokens(4);
  const std::vector<Token> many = some_tokens(60, 1);
  const Chunk chunks[] = {{0, 0, few, false}, {1, 0, many, true}};
  const Instant start = clock.now();
  ASSERT_EQ(engine_.decode(chunks), StepOutcome::Done);
  const Duration took = clock.now() - start;
  const Logits expected(engine_.logits(1).begin(), engine_.logits(1).end());
  const std::vector<Token> bystander = some_tokens(10, 4);
  append(2, bystander);

  int aborted = 0;
  for (const int percent : {10, 70, 40}) {
    engine_.truncate(0, 0);
    engine_.truncate(1, 0);
    std::atomic<bool> go = false;
    std::thread aborter([&] {
      go.wait(false);
      const Instant until = clock.now() + took * percent / 100;
      while (clock.now() < until) std::this_thread::yield();
      engine_.request_abort();
    });
    go = true;
    go.notify_one();
    const StepOutcome outcome = engine_.decode(chunks);
    aborter.join();
    if (outcome == StepOutcome::Done) {  // it came too late, so it ends the next pass
      const std::vector<Token> next = {5};
      const Chunk late{1, 60, next, true};
      EXPECT_EQ(engine_.decode({&late, 1}), StepOutcome::Aborted);
    }
    aborted += outcome == StepOutcome::Aborted ? 1 : 0;
    const int held = engine_.length(1);
    EXPECT_TRUE(held == 0 || held == 4 || held == 60) << held;
    EXPECT_EQ(engine_.length(0), std::min(held, 4));
    EXPECT_EQ(engine_.length(2), 10);
    engine_.truncate(1, std::min(held, 59));  // the last token's logits are gone
    const Logits logits = append(1, std::span(many).subspan(engine_.length(1)));
    EXPECT_LT(difference(logits, expected), kRegimes) << "held " << held;
  }
  EXPECT_GT(aborted, 0);
}

TEST_F(LlamaEngineTest, AFullSlotAndAFullStepAreComputed) {
  const std::vector<Token> prompt = some_tokens(256);
  const Chunk chunk{7, 0, prompt, true};
  EXPECT_EQ(engine_.decode({&chunk, 1}), StepOutcome::Done);
  EXPECT_EQ(engine_.length(7), 256);
  EXPECT_TRUE(std::isfinite(engine_.logits(0)[0]));
}

using LlamaEngineDeathTest = LlamaEngineTest;

TEST_F(LlamaEngineDeathTest, WhatWouldCrashLlamaIsOurCheck) {
  const std::vector<Token> unknown = {engine_.info().vocabulary};
  const std::vector<Token> fine = {1};
  const auto decode = [&](int slot, int pos, std::span<const Token> tokens) {
    const Chunk chunk{slot, pos, tokens, true};
    (void)engine_.decode({&chunk, 1});
  };
  EXPECT_DEATH(decode(0, 0, unknown), "vocabulary");
  EXPECT_DEATH(decode(8, 0, fine), "slot");
  EXPECT_DEATH(decode(0, -1, fine), "pos");
  EXPECT_DEATH((void)engine_.length(-1), "slot");
}

// Other programs take the cores: it computes with fewer threads meanwhile, and says the same.
TEST_F(LlamaEngineTest, OthersOnTheCoresChangeNoAnswer) {
  LoadOptions options = sample_options();
  options.threads = 2;
  auto model = load_llama(options, {});
  ASSERT_TRUE(model) << model.error().message;
  Engine& engine = *model->engine;
  const std::vector<Token> prompt = some_tokens(20);
  const Logits expected = append(engine, 0, prompt);
  for (int round = 0; round < (kSanitized ? 1 : 2); ++round) {
    std::vector<pid_t> others;
    for (int i = 0; i < 4; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        std::atomic<unsigned> spin{0};
        for (;;) ++spin;
      }
      ASSERT_GT(child, 0);
      others.push_back(child);
    }
    const auto until = [&](std::chrono::milliseconds time) {
      const auto end = std::chrono::steady_clock::now() + time;
      while (std::chrono::steady_clock::now() < end) {
        engine.truncate(0, 0);
        EXPECT_EQ(append(engine, 0, prompt), expected);
      }
    };
    until(std::chrono::milliseconds(1500));
    for (const pid_t child : others) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    until(std::chrono::milliseconds(1500));  // long enough to try all threads again
  }
}

}  // namespace
}  // namespace flotilla::engine
