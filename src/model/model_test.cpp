#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/random.h"
#include "model/alias.h"
#include "model/footprint.h"
#include "model/gguf_builder.h"
#include "model/model_files.h"
#include "model/split_name.h"

namespace flotilla::model {
namespace {

namespace fs = std::filesystem;

TEST(Alias, IsTheModelsNameWithoutQuantisationAndSplit) {
  const std::pair<const char*, const char*> cases[] = {
      {"SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2-135m-instruct"},
      {"/models/Qwen2.5-7B-Instruct-Q4_K_M-00001-of-00002.gguf", "qwen2.5-7b-instruct"},
      {"Llama-3.2-1B-Instruct-IQ2_XXS.gguf", "llama-3.2-1b-instruct"},
      {"gpt-oss-20b-mxfp4.gguf", "gpt-oss-20b"},
      {"phi_3_mini.f16.gguf", "phi-3-mini"},
      {"model_q8_0.GGUF", "model"},
      {"Qwen3-UD-Q4_K_XL.gguf", "qwen3"},
      {"dir/Mistral-7B-v0.3/", "mistral-7b-v0.3"},
      {"q4_0.gguf", "q4-0"},
      {"Q-star.gguf", "q-star"},
      {"..gguf", "model"},
      {"", "model"},
      {"/", "model"},
      {"Größe 1.gguf", "gr----e-1"},
  };
  for (const auto& [path, alias] : cases) EXPECT_EQ(default_alias(path), alias) << path;
}

TEST(Alias, TheDefaultIsAlwaysValid) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::string path;
    for (std::uint64_t i = random.below(120); i > 0; --i)
      path += random.chance(0.5) ? static_cast<char>(random.next()) : "-._/aQ4K"[random.below(8)];
    EXPECT_TRUE(check_alias(default_alias(path))) << default_alias(path);
  }
}

TEST(Alias, NamesAreCheckedAndQuoted) {
  EXPECT_TRUE(check_alias("a"));
  EXPECT_TRUE(check_alias("smollm2-135m.v2"));
  for (const char* bad : {"", "-a", ".a", "A", "a b", "a_b", "a/b"})
    EXPECT_FALSE(check_alias(bad)) << bad;
  EXPECT_TRUE(check_alias(std::string(64, 'a')));
  EXPECT_FALSE(check_alias(std::string(65, 'a')));
  EXPECT_TRUE(check_id("cluster id", "local-1"));
  EXPECT_TRUE(check_id("cluster id", std::string(41, 'a')));
  for (const std::string& bad : {std::string(), std::string("-a"), std::string("a.b"),
                                 std::string(42, 'a'), std::string("a\nb"), std::string("Node")})
    EXPECT_FALSE(check_id("node id", bad));
  EXPECT_NE(check_id("node id", "Bad").error().message.find("node id \"Bad\""), std::string::npos);
}

TEST(SplitName, IsTakenApartAndPutTogether) {
  const auto split = parse_split_name("m-00002-of-00010");
  ASSERT_TRUE(split);
  EXPECT_EQ(split->base, "m");
  EXPECT_EQ(split->part, 2);
  EXPECT_EQ(split->parts, 10);
  EXPECT_EQ(make_split_name("m", 2, 10), "m-00002-of-00010");
  for (const char* bad : {"m", "-00001-of-00002", "m-00003-of-00002", "m-00000-of-00002",
                          "m-0000a-of-00002", "m-00001-of-0000", "m-+0001-of-00002"})
    EXPECT_FALSE(parse_split_name(bad)) << bad;
}

TEST(Footprint, IsWeightsKvAndBuffers) {
  auto header = parse_gguf_header(small_gguf());
  ASSERT_TRUE(header);
  EXPECT_GT(header->embedding_bytes, 0);
  EXPECT_FALSE(header->has_output);
  EXPECT_EQ(footprint(*header, 1216, {.width = 4, .context = 64})->weights,
            1216 + header->embedding_bytes);
  header->has_output = true;
  const auto need = footprint(*header, 1216, {.width = 4, .context = 64});
  ASSERT_TRUE(need);
  EXPECT_EQ(need->weights, 1216);
  // layers × heads × dims × cells × f16; a slot's cells are multiples of 256
  EXPECT_EQ(need->kv, 2 * 2 * (8 + 8) * 256 * 4 * 2);
  EXPECT_GT(need->buffers, 0);
  EXPECT_EQ(need->total(), need->weights + need->kv + need->buffers);
  EXPECT_EQ(footprint(*header, 1216, {.width = 4, .context = 64, .kv_type = "q8_0"})->kv,
            need->kv * 34 / 64);
  EXPECT_EQ(footprint(*header, 1216, {.width = 1})->context, 128);
  EXPECT_EQ(footprint(*header, 1216, {.width = 1, .window = 1280})->kv,
            5 * footprint(*header, 1216, {.width = 1})->kv);
  EXPECT_EQ(footprint(*header, 1216, {.width = 4, .context = 128, .window = 300})->kv,
            footprint(*header, 1216, {.width = 2, .context = 128})->kv);
  const auto beyond = footprint(*header, 1216, {.width = 1, .context = 129});
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().message,
            "context 129 is larger than the 128 tokens that the model was trained for");
}

TEST(Footprint, RecurrentLayersHaveAStateInsteadOfCells) {
  GgufHeader header;
  header.context_trained = 1024;
  header.kv_heads = {0, 0};
  header.state_bytes = 5000;
  EXPECT_EQ(footprint(header, 1, {.width = 3})->kv, 15'000);
  header.kv_heads = {0, 1};
  header.key_dim = header.value_dim = 32;
  EXPECT_EQ(footprint(header, 1, {.width = 2})->kv, 10'000 + 2 * 1024 * 64 * 2);
}

TEST(Footprint, RefusesWhatIsOutOfRangeAndSurvivesLies) {
  GgufHeader header;
  EXPECT_FALSE(footprint(header, 0, {.width = 0}));
  EXPECT_FALSE(footprint(header, 0, {.width = 65}));
  EXPECT_FALSE(footprint(header, 0, {.context = -1}));
  EXPECT_NE(footprint(header, 0, {.kv_type = "q2"}).error().message.find("q2"), std::string::npos);
  header.kv_heads.assign(10000, std::int64_t{1} << 40);
  header.key_dim = header.value_dim = header.vocabulary = header.embedding = std::int64_t{1} << 40;
  header.context_trained = std::int64_t{1} << 40;
  const auto need = footprint(header, 1, {.width = 64});
  ASSERT_TRUE(need);
  EXPECT_GT(need->total(), std::int64_t{1} << 50);
}

class ModelFiles : public testing::Test {
 protected:
  ModelFiles() {
    char name[] = "/tmp/flotilla-test-XXXXXX";
    root_ = ::mkdtemp(name);
    dir_ = root_ / "models";
  }
  ~ModelFiles() override { fs::remove_all(root_); }
  void put(const fs::path& name, std::size_t bytes = 10) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << std::string(bytes, 'x');
  }
  Code refused(const std::string& model) {
    const auto found = find_model(model, dir_);
    return found ? Code::Internal : found.error().code;
  }
  fs::path root_;
  fs::path dir_;
};

TEST_F(ModelFiles, AreFoundByPathAndByDirectory) {
  put("models/a/x.gguf", 7);
  const auto relative = find_model("a/x.gguf", dir_);
  ASSERT_TRUE(relative) << relative.error().message;
  EXPECT_EQ(relative->first, dir_ / "a/x.gguf");
  EXPECT_EQ(relative->bytes, 7);
  EXPECT_EQ(find_model((dir_ / "a/x.gguf").string(), "")->bytes, 7);
  EXPECT_EQ(find_model("a", dir_)->first, dir_ / "a/x.gguf");
  put("models/a/y.gguf");
  EXPECT_EQ(refused("a"), Code::Unprocessable);
  EXPECT_EQ(refused("b.gguf"), Code::NotFound);
  EXPECT_EQ(refused(""), Code::InvalidArgument);
  put("models/a/notes.txt");
  EXPECT_EQ(refused("a/notes.txt"), Code::Unprocessable);
  EXPECT_EQ(find_model("x.gguf", "").error().code, Code::Unprocessable);
}

TEST_F(ModelFiles, ASplitIsOneModelAndEveryPartMustBeThere) {
  for (const char* part : {"models/s-00001-of-00003.gguf", "models/s-00002-of-00003.gguf"})
    put(part);
  EXPECT_EQ(refused("s-00001-of-00003.gguf"), Code::Unprocessable);
  put("models/s-00003-of-00003.gguf", 5);
  const auto found = find_model("s-00001-of-00003.gguf", dir_);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->parts.size(), 3U);
  EXPECT_EQ(found->bytes, 25);
  EXPECT_EQ(refused("s-00002-of-00003.gguf"), Code::Unprocessable);
  const auto scan = scan_models(dir_, 100);
  ASSERT_TRUE(scan);
  ASSERT_EQ(scan->models.size(), 1U);
  EXPECT_EQ(scan->models[0].path, "s-00001-of-00003.gguf");
}

TEST_F(ModelFiles, NoRelativePathLeadsOut) {
  put("secret/x.gguf");
  put("models/in.gguf");
  EXPECT_EQ(refused("../secret/x.gguf"), Code::PermissionDenied);
  fs::create_symlink(root_ / "secret/x.gguf", dir_ / "link.gguf");
  EXPECT_EQ(refused("link.gguf"), Code::PermissionDenied);
  fs::create_directory_symlink(root_ / "secret", dir_ / "linked");
  EXPECT_EQ(refused("linked"), Code::PermissionDenied);
  put("secret/y.gguf");
  EXPECT_EQ(refused("linked"), Code::PermissionDenied) << "of several it would name each";
  EXPECT_EQ(refused("../secret/../models/../secret/missing.gguf"), Code::NotFound);
  fs::create_symlink(dir_ / "in.gguf", dir_ / "inner.gguf");
  EXPECT_TRUE(find_model("inner.gguf", dir_));
  EXPECT_TRUE(find_model("../models/in.gguf", dir_));
}

TEST_F(ModelFiles, AScanFindsFoldersOfWeightsToo) {
  put("models/qwen-4bit/config.json", 2);
  put("models/qwen-4bit/model-1.safetensors", 10);
  put("models/qwen-4bit/model-2.safetensors", 5);
  put("models/both/config.json");
  put("models/both/w.safetensors");
  put("models/both/w.gguf");
  put("models/no-config/w.safetensors");
  put("models/a.gguf");
  put("secret/w.safetensors");
  fs::create_directory(dir_ / "leads-out");
  put("models/leads-out/config.json");
  fs::create_symlink(root_ / "secret/w.safetensors", dir_ / "leads-out/w.safetensors");
  const auto scan = scan_models(dir_, 100);
  ASSERT_TRUE(scan);
  std::vector<std::pair<std::string, bool>> found;
  for (const FoundModel& one : scan->models) found.emplace_back(one.path, one.folder);
  EXPECT_EQ(found, (std::vector<std::pair<std::string, bool>>{
                       {"a.gguf", false}, {"both/w.gguf", false}, {"qwen-4bit", true}}));
  EXPECT_EQ(scan->models[2].files.bytes, 15);
  const auto loaded = find_model_folder("qwen-4bit", dir_);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->parts, scan->models[2].files.parts) << "what a load would take";
}

TEST_F(ModelFiles, AScanFindsAllOnceAndSurvivesRings) {
  put("models/b.gguf");
  put("models/deep/er/a.GGUF");
  put("models/readme.md");
  put("secret/x.gguf");
  fs::create_directory_symlink(dir_, dir_ / "deep/ring");
  fs::create_directory_symlink(root_ / "secret", dir_ / "out");
  fs::create_symlink("nowhere.gguf", dir_ / "broken.gguf");
  const auto scan = scan_models(dir_, 100);
  ASSERT_TRUE(scan);
  ASSERT_EQ(scan->models.size(), 2U);
  EXPECT_EQ(scan->models[0].path, "b.gguf");
  EXPECT_EQ(scan->models[1].path, "deep/er/a.GGUF");
  EXPECT_FALSE(scan->truncated);
  EXPECT_TRUE(scan_models(dir_, 1)->truncated);
  EXPECT_EQ(scan_models(root_ / "none", 1).error().code, Code::NotFound);
}

}  // namespace
}  // namespace flotilla::model
