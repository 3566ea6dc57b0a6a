#include <algorithm>
#include <csignal>
#include <filesystem>
#include <limits>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "engine/llama_engine.h"
#include "engine/test_tiny_models.h"

// What aborts or misleads inside libllama (docs/engine.md 0), reached for through our interface.
namespace flotilla::engine {
namespace {

class TrapsTest : public testing::Test {
 protected:
  void TearDown() override {
    if (!file_.empty()) std::filesystem::remove(file_);
  }

  LoadOptions options_of(const TinyChange& change = {}) {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ranges::replace(name, '/', '-');
    file_ = std::filesystem::path(testing::TempDir()) / fmt::format("trap-{}.gguf", name);
    TinyModel("llama").write(file_, change);
    LoadOptions options;
    options.model = file_;
    options.width = 2;
    options.context = 64;
    options.step_tokens_max = 16;
    return options;
  }
  LoadedModel load() {
    auto loaded = load_llama(options_of(), {});
    if (!loaded) {
      ADD_FAILURE() << loaded.error().message;
      std::abort();
    }
    return std::move(*loaded);
  }

  std::filesystem::path file_;
};

using TrapsDeathTest = TrapsTest;

TEST_F(TrapsDeathTest, passes_larger_than_the_engine_takes_are_our_check) {
  LoadedModel model = load();
  const std::vector<Token> many(17, 5);
  const auto decode = [&](std::span<const Chunk> chunks) { (void)model.engine->decode(chunks); };
  const Chunk large[] = {{0, 0, many, true}};
  EXPECT_DEATH(decode(large), "step_tokens_max");
  const std::span<const Token> most = std::span(many).first(16);
  const Chunk two[] = {{0, 0, most, true}, {1, 0, most.first(1), true}};
  EXPECT_DEATH(decode(two), "step_tokens_max");
  const Chunk unsorted[] = {{1, 0, most.first(1), true}, {0, 0, most.first(1), true}};
  EXPECT_DEATH(decode(unsorted), "slot");
  const Chunk twice[] = {{1, 0, most.first(1), true}, {1, 1, most.first(1), true}};
  EXPECT_DEATH(decode(twice), "slot");
  EXPECT_DEATH(decode({}), "empty");
  const Chunk gap[] = {{0, 3, most, true}};
  EXPECT_DEATH(decode(gap), "length");
  for (int pos = 0; pos < 64; pos += 16) {
    const Chunk fits[] = {{0, pos, most, false}};
    ASSERT_EQ(model.engine->decode(fits), StepOutcome::Done);
  }
  const Chunk beyond[] = {{0, 64, most.first(1), true}};
  EXPECT_DEATH(decode(beyond), "context");
}

TEST_F(TrapsDeathTest, slots_that_do_not_exist_are_our_check) {
  LoadedModel model = load();
  Engine& engine = *model.engine;
  EXPECT_DEATH(engine.truncate(2, 0), "slot");
  EXPECT_DEATH(engine.truncate(0, 1), "length");
  EXPECT_DEATH((void)engine.save(-1), "slot");
  EXPECT_DEATH((void)engine.restore(300, {}), "slot");
  EXPECT_DEATH((void)engine.move(0, 2), "slot");
  EXPECT_DEATH((void)engine.logits(0), "logits_");
}

TEST_F(TrapsTest, tokens_that_do_not_exist_have_no_text) {
  const LoadedModel model = load();
  const Token last = std::numeric_limits<Token>::max();
  for (const Token token : {-1, std::numeric_limits<Token>::min(), 259, 260, 1 << 20, last}) {
    EXPECT_EQ(model.tokenizer->piece(token), "") << token;
    EXPECT_FALSE(model.tokenizer->ends_generation(token)) << token;
  }
}

TEST_F(TrapsTest, cells_of_another_layout_are_refused_and_leave_the_slot_empty) {
  LoadedModel model = load();
  const std::vector<Token> tokens(10, 7);
  const Chunk chunk{0, 0, tokens, true};
  ASSERT_EQ(model.engine->decode({&chunk, 1}), StepOutcome::Done);
  const auto state = model.engine->save(0);
  ASSERT_TRUE(state);
  LoadOptions wider = options_of();
  wider.width = 3;  // the number of slots is part of libllama's format
  auto other = load_llama(wider, {});
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->engine->restore(1, *state));
  EXPECT_EQ(other->engine->length(1), 0);
}

// A model file's facts that are nonsense: an error that names the file, a working engine, or at
// worst an abort, which ends this one runner. Never a wild read.
class WrongFacts : public TrapsTest,
                   public testing::WithParamInterface<std::pair<const char*, std::uint32_t>> {};

TEST_P(WrongFacts, end_in_an_error_or_an_abort) {
  const auto [key, value] = GetParam();
  LoadOptions options = options_of([&](gguf_context* gguf) { gguf_set_val_u32(gguf, key, value); });
  options.context = 0;
  const auto load_and_use = [&] {
    auto loaded = load_llama(options, {});
    if (loaded) {
      const std::vector<Token> tokens(3, 5);
      const Chunk chunk{0, 0, tokens, true};
      (void)loaded->engine->decode({&chunk, 1});
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(
      load_and_use(),
      [](int status) {
        return (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
               (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
      },
      "");
}

constexpr std::uint32_t kHuge = 0x7FFFFFFF;
constexpr std::uint32_t kAll = 0xFFFFFFFF;

INSTANTIATE_TEST_SUITE_P(
    Keys, WrongFacts,
    testing::Values(
        std::pair("llama.context_length", 0U), std::pair("llama.context_length", 1U),
        std::pair("llama.context_length", kHuge), std::pair("llama.context_length", kAll),
        std::pair("llama.block_count", 0U), std::pair("llama.block_count", 1U),
        std::pair("llama.block_count", 3U), std::pair("llama.block_count", kAll),
        std::pair("llama.embedding_length", 0U), std::pair("llama.embedding_length", 65U),
        std::pair("llama.feed_forward_length", kAll), std::pair("llama.attention.head_count", 0U),
        std::pair("llama.attention.head_count", 3U), std::pair("llama.attention.head_count", kAll),
        std::pair("llama.attention.head_count_kv", 0U),
        std::pair("llama.attention.head_count_kv", kAll),
        std::pair("llama.attention.key_length", 31U), std::pair("llama.rope.dimension_count", kAll),
        std::pair("llama.vocab_size", kHuge), std::pair("tokenizer.ggml.bos_token_id", kAll),
        std::pair("tokenizer.ggml.eos_token_id", kHuge),
        std::pair("tokenizer.ggml.eot_token_id", 1000U),
        std::pair("tokenizer.ggml.unknown_token_id", kHuge)));

}  // namespace
}  // namespace flotilla::engine
