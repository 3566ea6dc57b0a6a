#include "engine/vector_engine.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "engine/llama_engine.h"
#include "engine/test_tiny_models.h"

namespace flotilla::engine {
namespace {

using Vector = std::vector<float>;

class VectorEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = std::filesystem::path(testing::TempDir()) / "tiny-bert.gguf";
    TinyModel("bert").write(file_);
    LoadOptions options;
    options.model = file_;
    options.width = 4;
    options.context = 128;
    auto loaded = load_llama(options, {});
    ASSERT_TRUE(loaded) << loaded.error().message;
    model_ = std::move(*loaded);
  }
  void TearDown() override { std::filesystem::remove(file_); }

  static std::vector<Token> some_tokens(int count, int kind) {
    std::vector<Token> tokens;
    for (int i = 0; i < count; ++i) tokens.push_back(3 + (i * 37 + kind * 101) % 256);
    return tokens;
  }
  // One prompt a slot, in one pass.
  std::vector<Vector> compute(const std::vector<std::vector<Token>>& prompts) {
    Engine& engine = *model_.engine;
    std::vector<Chunk> chunks;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      engine.truncate(static_cast<int>(i), 0);
      chunks.push_back({.slot = static_cast<int>(i),
                        .pos = 0,
                        .tokens = prompts[i],
                        .wants_logits = true,
                        .wants_vector = true});
    }
    EXPECT_EQ(engine.decode(chunks), StepOutcome::Done);
    std::vector<Vector> out;
    for (std::size_t i = 0; i < prompts.size(); ++i)
      out.emplace_back(engine.vector(i).begin(), engine.vector(i).end());
    return out;
  }
  static float difference(const Vector& a, const Vector& b) {
    float largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
  }

  std::filesystem::path file_;
  LoadedModel model_;
};

TEST_F(VectorEngineTest, SaysWhatItIs) {
  const EngineInfo& info = model_.engine->info();
  EXPECT_FALSE(info.generates_text);
  EXPECT_TRUE(info.whole_prompts);
  EXPECT_EQ(info.vector_length, 64);
  EXPECT_EQ(info.context, 128);
  EXPECT_GE(info.step_tokens_max, info.context);
  EXPECT_EQ(model_.chat_template, nullptr);
}

TEST_F(VectorEngineTest, ATextsVectorIsItsOwnInAnyCompany) {
  const std::vector<std::vector<Token>> prompts = {some_tokens(5, 1), some_tokens(100, 2),
                                                   some_tokens(1, 3), some_tokens(40, 4)};
  const auto together = compute(prompts);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto alone = compute({prompts[i]});
    EXPECT_LT(difference(alone[0], together[i]), 1e-3F) << i;
  }
  EXPECT_GT(difference(together[0], together[1]), 0.05F) << "the test could not tell them apart";
}

TEST_F(VectorEngineTest, TokensSeeThoseBehindThem) {
  auto one = some_tokens(20, 1);
  const auto before = compute({one});
  std::reverse(one.begin(), one.end());
  EXPECT_GT(difference(before[0], compute({one})[0]), 1e-3F) << "positions count";
}

TEST_F(VectorEngineTest, AnAbortedPassLeavesNothing) {
  model_.engine->request_abort();
  const std::vector<Token> tokens = some_tokens(50, 1);
  const Chunk chunk{
      .slot = 0, .pos = 0, .tokens = tokens, .wants_logits = true, .wants_vector = true};
  EXPECT_EQ(model_.engine->decode({&chunk, 1}), StepOutcome::Aborted);
  EXPECT_EQ(model_.engine->length(0), 0);
  EXPECT_EQ(model_.engine->decode({&chunk, 1}), StepOutcome::Done);
  EXPECT_EQ(model_.engine->length(0), 50);
}

}  // namespace
}  // namespace flotilla::engine
