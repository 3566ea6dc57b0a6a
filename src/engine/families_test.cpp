#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "engine/llama_engine.h"
#include "engine/test_tiny_models.h"

// Each family's kind of cache behind the engine's promises: dense, with a sliding window,
// recurrent, both kinds in one model; and experts.
namespace flotilla::engine {
namespace {

using Logits = std::vector<float>;

class FamiliesTest : public testing::TestWithParam<std::string_view> {
 protected:
  static constexpr int kWidth = 4;

  void SetUp() override {
    file_ = std::filesystem::path(testing::TempDir()) / fmt::format("tiny-{}.gguf", GetParam());
    TinyModel(GetParam()).write(file_);
    LoadOptions options;
    options.model = file_;
    options.width = kWidth;
    options.context = 256;
    options.step_tokens_max = 64;
    auto loaded = load_llama(options, {});
    ASSERT_TRUE(loaded) << loaded.error().message;
    model_ = std::move(*loaded);
    engine_ = model_.engine.get();
  }
  void TearDown() override { std::filesystem::remove(file_); }

  static std::vector<Token> some_tokens(int count, int kind) {
    std::vector<Token> tokens;
    for (int i = 0; i < count; ++i) tokens.push_back(3 + (i * 37 + kind * 101 + i / 7) % 256);
    return tokens;
  }

  // All of `tokens` into an empty slot, in passes of `part`; the logits of the last.
  Logits fill(int slot, const std::vector<Token>& tokens, std::size_t part) {
    std::span<const Token> left(tokens);
    while (!left.empty()) {
      const auto now = left.first(std::min(part, left.size()));
      left = left.subspan(now.size());
      const Chunk chunk{slot, engine_->length(slot), now, left.empty()};
      EXPECT_EQ(engine_->decode({&chunk, 1}), StepOutcome::Done);
    }
    const auto row = engine_->logits(0);
    return {row.begin(), row.end()};
  }

  // Relative to the spread of the logits, as the probe has it.
  static float difference(const Logits& a, std::span<const float> b) {
    const auto [low, high] = std::ranges::minmax(a);
    float largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest / (high - low);
  }
  static constexpr float kSame = 0.03F;

  std::filesystem::path file_;
  LoadedModel model_;
  Engine* engine_ = nullptr;
};

TEST_P(FamiliesTest, slots_at_different_positions_share_passes) {
  ASSERT_EQ(engine_->info().width, kWidth) << engine_->info().width_reason;
  std::vector<std::vector<Token>> all;
  std::vector<Logits> alone;
  for (int slot = 0; slot < kWidth; ++slot) {
    all.push_back(some_tokens(20 + 25 * slot, slot));
    alone.push_back(fill(0, all.back(), 64));
    engine_->truncate(0, 0);
  }
  EXPECT_GT(difference(alone[0], alone[1]), 3 * kSame) << "the test could not tell them apart";
  // Each pass holds something of every slot: unequal chunks, then single tokens.
  std::vector<Logits> together(kWidth);
  for (int pass = 0; engine_->length(kWidth - 1) < static_cast<int>(all.back().size()); ++pass) {
    std::vector<Chunk> chunks;
    for (int slot = 0; slot < kWidth; ++slot) {
      const int held = engine_->length(slot);
      const int left = static_cast<int>(all[slot].size()) - held;
      if (left == 0) continue;
      const int count = pass % 2 == 0 ? std::min(left, 3 + 4 * slot) : 1;
      chunks.push_back({slot, held, std::span(all[slot]).subspan(held, count), count == left});
    }
    ASSERT_EQ(engine_->decode(chunks), StepOutcome::Done);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (!chunks[i].wants_logits) continue;
      const auto row = engine_->logits(i);
      together[chunks[i].slot].assign(row.begin(), row.end());
    }
  }
  for (int slot = 0; slot < kWidth; ++slot) {
    EXPECT_LT(difference(alone[slot], together[slot]), kSame) << "slot " << slot;
  }
}

TEST_P(FamiliesTest, saved_and_moved_slots_go_on_where_they_were) {
  const std::vector<Token> tokens = some_tokens(90, 1);
  const std::vector<Token> next = some_tokens(1, 5);
  fill(2, tokens, 32);
  const auto state = engine_->save(2);
  ASSERT_TRUE(state) << state.error().message;
  const Logits expected = fill(2, next, 1);
  engine_->truncate(2, 0);
  fill(0, some_tokens(40, 3), 32);
  ASSERT_TRUE(engine_->restore(3, *state));
  EXPECT_EQ(engine_->length(3), 90);
  ASSERT_TRUE(engine_->move(3, 1));
  EXPECT_EQ(engine_->length(3), 0);
  EXPECT_LT(difference(expected, fill(1, next, 1)), kSame);
}

TEST_P(FamiliesTest, a_truncated_slot_holds_a_prefix_or_nothing) {
  const std::vector<Token> tokens = some_tokens(80, 2);
  const Logits expected = fill(0, tokens, 64);
  engine_->truncate(0, 79);
  const int kept = engine_->length(0);
  EXPECT_TRUE(kept == 79 || kept == 0) << kept;
  const std::vector<Token> rest(tokens.begin() + kept, tokens.end());
  EXPECT_LT(difference(expected, fill(0, rest, 64)), kSame);
}

TEST_P(FamiliesTest, an_aborted_pass_leaves_what_can_be_continued) {
  const std::vector<Token> tokens = some_tokens(120, 4);
  const Logits expected = fill(0, tokens, 64);
  engine_->truncate(0, 0);
  const std::vector<Token> bystander = some_tokens(30, 5);
  const Logits undisturbed = fill(1, bystander, 64);
  engine_->truncate(1, 0);
  fill(1, std::vector<Token>(bystander.begin(), bystander.end() - 1), 64);
  for (int i = 0; i < 20; ++i) {
    engine_->truncate(0, 0);
    std::thread aborter([&] {
      for (int spin = 0; spin < i * 20; ++spin) std::this_thread::yield();
      engine_->request_abort();
    });
    int held = 0;
    while ((held = engine_->length(0)) < 120) {
      const auto part = std::span(tokens).subspan(held, std::min(64, 120 - held));
      const Chunk chunk{0, held, part, held + static_cast<int>(part.size()) == 120};
      if (engine_->decode({&chunk, 1}) == StepOutcome::Done) continue;
      ASSERT_LE(engine_->length(0), held + 64);
      // The last token's logits are gone when all are held.
      if (engine_->length(0) == 120) engine_->truncate(0, 119);
    }
    const auto row = engine_->logits(0);
    EXPECT_LT(difference(expected, row), kSame) << i;
    aborter.join();
  }
  ASSERT_EQ(engine_->length(1), 29);
  Logits last;
  for (;;) {  // a late abort may end this pass
    const Chunk chunk{1, 29, std::span(bystander).last(1), true};
    if (engine_->decode({&chunk, 1}) != StepOutcome::Done) {
      ASSERT_TRUE(engine_->length(1) == 29 || engine_->length(1) == 0);
      if (engine_->length(1) == 0) return;
      continue;
    }
    const auto row = engine_->logits(0);
    last.assign(row.begin(), row.end());
    break;
  }
  EXPECT_LT(difference(undisturbed, last), kSame);
}

TEST_P(FamiliesTest, a_full_slot_is_computed_and_the_memory_is_told) {
  const std::vector<Token> tokens = some_tokens(256, 7);
  const Logits logits = fill(3, tokens, 64);
  EXPECT_TRUE(std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); }));
  EXPECT_GT(engine_->info().kv_bytes, 0);
}

// What libllama itself gives as the last token's, of a whole prompt in a context made for vectors.
std::vector<float> vector_of_libllama(const std::filesystem::path& file,
                                      const std::vector<Token>& tokens) {
  const ModelHandle model(llama_model_load_from_file(file.c_str(), llama_model_default_params()),
                          llama_model_free);
  llama_context_params params = llama_context_default_params();
  params.n_ctx = 256;
  params.n_ubatch = 256;
  params.embeddings = true;
  params.pooling_type = LLAMA_POOLING_TYPE_LAST;
  params.n_threads = params.n_threads_batch = 1;
  const ContextHandle context(llama_init_from_model(model.get(), params));
  std::vector<Token> copy = tokens;
  EXPECT_EQ(llama_decode(context.get(),
                         llama_batch_get_one(copy.data(), static_cast<std::int32_t>(copy.size()))),
            0);
  const float* row = llama_get_embeddings_seq(context.get(), 0);
  return row == nullptr ? std::vector<float>()
                        : std::vector<float>(row, row + llama_model_n_embd(model.get()));
}

TEST_P(FamiliesTest, a_vector_is_the_last_tokens_whoever_shares_the_passes) {
  const std::vector<Token> tokens = some_tokens(100, 1);
  const std::vector<Token> other = some_tokens(9, 2);
  const std::vector<float> expected = vector_of_libllama(file_, tokens);
  ASSERT_EQ(engine_->info().vector_length, static_cast<int>(expected.size()));
  // Its prompt in three chunks, beside a slot that decodes and one that wants a vector too.
  fill(0, some_tokens(30, 3), 64);
  std::vector<float> got;
  std::vector<float> others;
  std::vector<float> decoded;
  for (int pass = 0; pass < 3; ++pass) {
    const std::vector<Token> next = some_tokens(1, pass);
    std::vector<Chunk> chunks;
    chunks.push_back({.slot = 0, .pos = 30 + pass, .tokens = next, .wants_logits = true});
    const int held = engine_->length(1);
    const int count = pass == 2 ? 100 - held : 40;
    chunks.push_back({.slot = 1,
                      .pos = held,
                      .tokens = std::span(tokens).subspan(held, count),
                      .wants_logits = pass == 2,
                      .wants_vector = pass == 2});
    if (pass == 2) {
      chunks.push_back(
          {.slot = 2, .pos = 0, .tokens = other, .wants_logits = true, .wants_vector = true});
    }
    ASSERT_EQ(engine_->decode(chunks), StepOutcome::Done);
    const auto row = engine_->logits(0);
    decoded.assign(row.begin(), row.end());
    if (pass < 2) continue;
    got.assign(engine_->vector(1).begin(), engine_->vector(1).end());
    others.assign(engine_->vector(2).begin(), engine_->vector(2).end());
  }
  EXPECT_LT(difference(expected, got), kSame);
  EXPECT_LT(difference(vector_of_libllama(file_, other), others), kSame);
  EXPECT_GT(difference(expected, others), 3 * kSame) << "the test could not tell them apart";
  EXPECT_TRUE(std::ranges::all_of(decoded, [](float logit) { return std::isfinite(logit); }));
}

INSTANTIATE_TEST_SUITE_P(Families, FamiliesTest, testing::ValuesIn(kTinyFamilies),
                         [](const auto& family) {
                           std::string name(family.param);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace flotilla::engine
