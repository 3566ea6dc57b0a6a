#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>

#include "engine/llama_engine.h"
#include "engine/llama_handles.h"
#include "engine/test_model.h"

namespace flotilla::engine {
namespace {

namespace fs = std::filesystem;

// A folder of this test's own, gone afterwards.
class LlamaLoadTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        (std::string("engine_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

  // The sample model with another header, and zeros as weights.
  fs::path with_header(const std::string& name,
                       const std::function<void(gguf_context*)>& change) const {
    const fs::path file = folder_ / name;
    const GgufHandle gguf(
        gguf_init_from_file(sample_model_file().c_str(), {.no_alloc = true, .ctx = nullptr}));
    change(gguf.get());
    gguf_write_to_file(gguf.get(), file.c_str(), /*only_meta=*/true);
    fs::resize_file(file, fs::file_size(file) + 100'000'000);
    return file;
  }

  // Loads, and must fail, naming the file.
  static Error error_of(LoadOptions options) {
    const auto loaded = load_llama(options, {});
    if (loaded) {
      ADD_FAILURE() << options.model << " was loaded";
      return {};
    }
    EXPECT_NE(loaded.error().message.find(options.model.string()), std::string::npos)
        << loaded.error().message;
    return loaded.error();
  }
  static Error error_of(const fs::path& file) {
    LoadOptions options = sample_options();
    options.model = file;
    return error_of(options);
  }

  static void expect(const Error& error, Code code, std::string_view words) {
    EXPECT_EQ(error.code, code);
    EXPECT_NE(error.message.find(words), std::string::npos) << error.message;
  }

  fs::path folder_;
};

TEST_F(LlamaLoadTest, ProgressGrowsToTheTotal) {
  std::vector<std::int64_t> loaded;
  std::int64_t total = 0;
  LoadOptions options = sample_options();
  options.width = 1;
  const auto model = load_llama(options, [&](std::int64_t bytes, std::int64_t all) {
    loaded.push_back(bytes);
    total = all;
    return true;
  });
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(total, model->engine->info().model_bytes);
  EXPECT_GT(loaded.size(), 10U);
  EXPECT_TRUE(std::ranges::is_sorted(loaded));
  EXPECT_EQ(loaded.front(), 0);
  EXPECT_EQ(loaded.back(), total);
}

TEST_F(LlamaLoadTest, StopsWhenProgressSaysSo) {
  for (const int calls : {1, 5, 100}) {
    int left = calls;
    const auto model =
        load_llama(sample_options(), [&](std::int64_t, std::int64_t) { return --left > 0; });
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code, Code::Cancelled);
    EXPECT_EQ(left, 0);
  }
}

TEST_F(LlamaLoadTest, FilesThatAreNoModelAreNamedWithTheReason) {
  expect(error_of(folder_ / "missing.gguf"), Code::NotFound, "there is no model file");
  expect(error_of(folder_), Code::InvalidArgument, "is not a file");
  expect(error_of(write("empty.gguf", "")), Code::InvalidArgument, "not a GGUF");
  expect(error_of(write("text.gguf", "GGML is not GGUF")), Code::InvalidArgument, "not a GGUF");
  expect(error_of(write("short.gguf", "GGUF")), Code::InvalidArgument, "broken");
  expect(error_of(write("garbage.gguf", "GGUF\x03" + std::string(4000, '\xA7'))),
         Code::InvalidArgument, "broken");
}

TEST_F(LlamaLoadTest, TruncatedFilesAreRefusedWhereverTheyEnd) {
  const auto size = static_cast<std::int64_t>(fs::file_size(sample_model_file()));
  const fs::path file = folder_ / "cut.gguf";
  fs::copy_file(sample_model_file(), file);
  for (const std::int64_t end : {size - 1, size / 2, std::int64_t{3'000'000}}) {
    fs::resize_file(file, end);
    expect(error_of(file), Code::InvalidArgument, "truncated: its header announces");
  }
  for (const std::int64_t end : {1'000'000, 100'000, 1000, 100, 24, 9}) {
    fs::resize_file(file, end);
    expect(error_of(file), Code::InvalidArgument, "broken or truncated");
  }
}

TEST_F(LlamaLoadTest, ModelsThatCannotChatAreRefused) {
  expect(error_of(with_header("arch.gguf",
                              [](gguf_context* gguf) {
                                gguf_set_val_str(gguf, "general.architecture", "nonesuch");
                              })),
         Code::InvalidArgument, "unknown model architecture: 'nonesuch'");
  expect(error_of(with_header(
             "reranker.gguf",
             [](gguf_context* gguf) { gguf_set_val_u32(gguf, "llama.pooling_type", 4); })),
         Code::InvalidArgument, "reranker");
  // Last-token pooling, without a chat template: it is served, for vectors alone.
  LoadOptions options = sample_options();
  options.model = with_header("vectors.gguf", [](gguf_context* gguf) {
    gguf_set_val_u32(gguf, "llama.pooling_type", 3);
    gguf_remove_key(gguf, "tokenizer.chat_template");
  });
  const auto vectors = load_llama(options, {});
  ASSERT_TRUE(vectors) << vectors.error().message;
  EXPECT_FALSE(vectors->engine->info().generates_text);
  EXPECT_EQ(vectors->engine->info().vector_length, 576);
  EXPECT_EQ(vectors->chat_template, nullptr);
  expect(error_of(with_header(
             "base.gguf",
             [](gguf_context* gguf) { gguf_remove_key(gguf, "tokenizer.chat_template"); })),
         Code::InvalidArgument, "no chat template");
  expect(error_of(with_header(
             "nameless.gguf",
             [](gguf_context* gguf) { gguf_remove_key(gguf, "general.architecture"); })),
         Code::InvalidArgument, "general.architecture");
  expect(error_of(with_header(
             "layers.gguf",
             [](gguf_context* gguf) { gguf_set_val_u32(gguf, "llama.block_count", 31); })),
         Code::InvalidArgument, "blk.30.attn_norm.weight");
}

TEST_F(LlamaLoadTest, OptionsOutOfRangeAreNamedWithTheirValue) {
  const auto error = [](auto change) {
    LoadOptions options = sample_options();
    change(options);
    return error_of(options);
  };
  const Error context = error([](LoadOptions& o) { o.context = 10'000; });
  expect(context, Code::InvalidArgument, "10000");
  expect(context, Code::InvalidArgument, "8192");
  expect(error([](LoadOptions& o) { o.window = 255; }), Code::InvalidArgument, "255");
  expect(error([](LoadOptions& o) { o.width = 0; }), Code::InvalidArgument, "width");
  expect(error([](LoadOptions& o) { o.width = 65; }), Code::InvalidArgument, "65");
  expect(error([](LoadOptions& o) { o.threads = 0; }), Code::InvalidArgument, "threads");
  expect(error([](LoadOptions& o) { o.threads = 1 << 20; }), Code::InvalidArgument, "threads");
  expect(error([](LoadOptions& o) { o.context = -5; }), Code::InvalidArgument, "-5");
  expect(error([](LoadOptions& o) { o.step_tokens_max = 0; }), Code::InvalidArgument, "step");
  expect(error([](LoadOptions& o) { o.chat_template = "{% for %}"; }), Code::InvalidArgument,
         "template");
}

TEST_F(LlamaLoadTest, ASmallWindowLowersTheWidth) {
  LoadOptions options = sample_options();
  options.window = 600;
  options.threads = 2;
  options.step_tokens_max = 1;  // too small for the slots: raised
  const auto model = load_llama(options, {});
  ASSERT_TRUE(model) << model.error().message;
  const EngineInfo& info = model->engine->info();
  EXPECT_EQ(info.width, 2);
  EXPECT_EQ(info.width_reason, "a window of 600 cells holds 2 contexts of 256, not 8");
  EXPECT_EQ(info.kv_bytes, 2LL * 256 * 23'040);
  EXPECT_EQ(info.step_tokens_max, 2);
  const std::vector<Token> token = {100};
  const Chunk chunks[] = {{0, 0, token, true}, {1, 0, token, true}};
  EXPECT_EQ(model->engine->decode(chunks), StepOutcome::Done);
}

TEST_F(LlamaLoadTest, TheSmallestEngineWorks) {
  LoadOptions options = sample_options();
  options.width = 1;
  options.context = 3;
  options.step_tokens_max = 1;
  options.threads = 1;
  const auto model = load_llama(options, {});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->engine->info().context, 3);
  EXPECT_EQ(model->engine->info().step_tokens_max, 1);
  const std::vector<Token> token = {100};
  for (int pos = 0; pos < 3; ++pos) {
    const Chunk chunk{0, pos, token, true};
    EXPECT_EQ(model->engine->decode({&chunk, 1}), StepOutcome::Done);
  }
}

}  // namespace
}  // namespace flotilla::engine
