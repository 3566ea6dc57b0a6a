#include "model/gguf_header.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/random.h"
#include "model/gguf_builder.h"

namespace flotilla::model {
namespace {

std::string refusal(const std::vector<std::uint8_t>& file) {
  const auto header = parse_gguf_header(file);
  if (header) return "(was read)";
  EXPECT_EQ(header.error().code, Code::Unprocessable);
  return header.error().message;
}

void expect_refused(const std::vector<std::uint8_t>& file, const std::string& why) {
  EXPECT_NE(refusal(file).find(why), std::string::npos) << refusal(file);
}

TEST(GgufHeader, SaysWhatTheModelIs) {
  const auto header = parse_gguf_header(small_gguf());
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->architecture, "llama");
  EXPECT_EQ(header->name, "tiny");
  EXPECT_EQ(header->quantization, "Q4_0");
  EXPECT_EQ(header->context_trained, 128);
  EXPECT_EQ(header->layers, 2);
  EXPECT_EQ(header->heads, 4);
  EXPECT_EQ(header->kv_heads, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(header->key_dim, 8);
  EXPECT_EQ(header->value_dim, 8);
  EXPECT_EQ(header->vocabulary, 5);
  EXPECT_EQ(header->tensor_count, 2);
  EXPECT_EQ(header->tensor_bytes, 640 + 576);
  EXPECT_EQ(header->small_quantized, 1);
  EXPECT_EQ(header->small_quantized_name, "blk.0.attn_q.weight");
  EXPECT_EQ(header->split_count, 1);
  EXPECT_FALSE(header->has_chat_template);
}

TEST(GgufHeader, ReadsTheSampleModel) {
  const char* path = std::getenv("FLOTILLA_SAMPLE_MODEL");
  if (path == nullptr || !std::filesystem::exists(path)) GTEST_SKIP() << "no sample model";
  const auto header = read_gguf_header(path);
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->architecture, "llama");
  EXPECT_EQ(header->quantization, "Q4_1");
  EXPECT_EQ(header->context_trained, 8192);
  EXPECT_EQ(header->layers, 30);
  EXPECT_EQ(header->heads, 9);
  EXPECT_EQ(header->kv_heads, std::vector<std::int64_t>(30, 3));
  EXPECT_EQ(header->key_dim, 64);
  EXPECT_EQ(header->vocabulary, 49152);
  EXPECT_EQ(header->file_bytes, header->data_offset + header->tensor_bytes);
  EXPECT_TRUE(header->has_chat_template);
}

TEST(GgufHeader, PerLayerHeadsAndOwnHeadSizesAreKept) {
  GgufBuilder file;
  file.begin(0, 6)
      .string("general.architecture", "x")
      .number("x.block_count", 3)
      .number("x.embedding_length", 64)
      .numbers("x.attention.head_count_kv", {4, 0, 1})
      .number("x.attention.key_length", 192)
      .number("x.attention.value_length", 128);
  const auto header = parse_gguf_header(file.bytes);
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->kv_heads, (std::vector<std::int64_t>{4, 0, 1}));
  EXPECT_EQ(header->key_dim, 192);
  EXPECT_EQ(header->value_dim, 128);
}

TEST(GgufHeader, EveryTruncationIsRefusedAndNeverRead) {
  const auto whole = small_gguf();
  ASSERT_TRUE(parse_gguf_header(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::uint8_t> part(whole.begin(),
                                         whole.begin() + static_cast<std::ptrdiff_t>(size));
    const std::string why = refusal(part);
    EXPECT_TRUE(why.find("truncated") != std::string::npos ||
                (size < 4 && why.find("not a GGUF") != std::string::npos))
        << size << ": " << why;
  }
}

TEST(GgufHeader, AFileOnTheDiskIsReadAsOneInMemory) {
  const auto whole = small_gguf();
  char name[] = "/tmp/flotilla-test-XXXXXX";
  const std::filesystem::path dir = ::mkdtemp(name);
  std::ofstream(dir / "a.gguf", std::ios::binary)
      .write(reinterpret_cast<const char*>(whole.data()),
             static_cast<std::streamsize>(whole.size()));
  const auto header = read_gguf_header(dir / "a.gguf");
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->name, "tiny");
  std::filesystem::resize_file(dir / "a.gguf", whole.size() - 1);
  const auto cut = read_gguf_header(dir / "a.gguf");
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find((dir / "a.gguf").string()), std::string::npos);
  EXPECT_EQ(read_gguf_header(dir / "b.gguf").error().code, Code::NotFound);
  EXPECT_EQ(read_gguf_header(dir).error().code, Code::Unprocessable);
  std::filesystem::remove_all(dir);
}

TEST(GgufHeader, LiesAreNamed) {
  expect_refused({'P', 'K', 3, 4, 0, 0, 0, 0}, "not a GGUF");
  expect_refused(GgufBuilder().begin(0, 0, 1).bytes, "version 1");
  expect_refused(GgufBuilder().begin(0, 0, 0x03000000).bytes, "big-endian");
  expect_refused(GgufBuilder().begin(~0ULL, 0).bytes, "tensors");
  expect_refused(GgufBuilder().begin(0, 1ULL << 40).bytes, "metadata entries");
  expect_refused(GgufBuilder().begin(0, 0).bytes, "no general.architecture");
  expect_refused(GgufBuilder().begin(0, 1).raw<std::uint64_t>(1ULL << 60).bytes, "bytes long");
  expect_refused(GgufBuilder().begin(0, 1).text("a").raw<std::uint32_t>(77).bytes,
                 "unknown type 77");
  expect_refused(GgufBuilder().begin(0, 2).number("a", 1).number("a", 1).bytes, "a twice");
  expect_refused(GgufBuilder()
                     .begin(0, 2)
                     .string("general.architecture", "x")
                     .number("x.block_count", ~0U)
                     .bytes,
                 "layers");
  expect_refused(GgufBuilder().begin(0, 1).number("general.alignment", 0).bytes, "alignment");
  GgufBuilder array;
  array.begin(0, 1).text("a").raw<std::uint32_t>(9).raw<std::uint32_t>(8).raw<std::uint64_t>(1ULL
                                                                                             << 62);
  expect_refused(array.bytes, "elements");
  GgufBuilder strings;
  strings.begin(0, 1).text("a").raw<std::uint32_t>(9).raw<std::uint32_t>(8).raw<std::uint64_t>(
      1 << 25);
  expect_refused(strings.bytes, "truncated");
  GgufBuilder nested;
  nested.begin(0, 1).text("a").raw<std::uint32_t>(9).raw<std::uint32_t>(9).raw<std::uint64_t>(1);
  expect_refused(nested.bytes, "unknown type 9");
}

TEST(GgufHeader, ImpossibleTensorsAreNamed) {
  const auto with = [](const std::vector<std::uint64_t>& dims, std::uint32_t type,
                       std::uint64_t offset) {
    GgufBuilder file;
    file.begin(1, 1).string("general.architecture", "x").tensor("t", dims, type, offset).data(64);
    return file.bytes;
  };
  EXPECT_TRUE(parse_gguf_header(with({16}, 0, 0)));
  expect_refused(with({17}, 0, 0), "truncated");
  expect_refused(with({16}, 0, 32), "truncated");
  expect_refused(with({16}, 0, ~0ULL), "begins at byte");
  expect_refused(with({16}, 4, 0), "unknown type 4");
  expect_refused(with({16}, 4000, 0), "unknown type 4000");
  expect_refused(with({16}, 2, 0), "no multiple");
  expect_refused(with({1ULL << 33, 1ULL << 33}, 0, 0), "dimension");
  expect_refused(with({1ULL << 63}, 0, 0), "dimension");
  expect_refused(with({1, 1, 1, 1, 1}, 0, 0), "5 dimensions");
}

TEST(GgufHeader, MutationsNeverCrashIt) {
  const auto whole = small_gguf();
  int read = 0;
  for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    auto file = whole;
    for (std::uint64_t i = 0; i < 1 + random.below(3); ++i) {
      const std::size_t at = static_cast<std::size_t>(random.below(file.size() - 8));
      const std::uint64_t value = random.chance(0.5) ? random.next() : ~0ULL << random.below(64);
      const std::size_t width = std::size_t{1} << random.below(4);
      std::copy_n(reinterpret_cast<const std::uint8_t*>(&value), width,
                  file.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (random.chance(0.2)) file.resize(static_cast<std::size_t>(random.below(file.size())));
    if (parse_gguf_header(file)) ++read;
  }
  EXPECT_GT(read, 100);  // else the loop only tests the magic
}

}  // namespace
}  // namespace flotilla::model
