#include "agent/model_copy.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include <gtest/gtest.h>

#include "model/model_place.h"
#include "platform/files.h"
#include "platform/process.h"

namespace flotilla::agent {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

class ModelCopy : public ::testing::Test {
 protected:
  ModelCopy() {
    fs::create_directories(root_ / "here" / "sub");
    fs::create_directories(root_ / "there");
    for (int i = 0; i < 200'000; ++i) content_ += static_cast<char>(i * 7 + i / 251);
    std::ofstream(root_ / "here" / kName, std::ios::binary) << content_;
  }
  ~ModelCopy() override { fs::remove_all(root_); }

  api::CopyOrder order(const char* folder) const {
    api::CopyOrder out;
    out.models_dir = root_ / folder;
    out.path = kName;
    out.bytes = static_cast<std::int64_t>(content_.size());
    return out;
  }
  // What a sender at `offset` says, the first `most` bytes of it.
  std::string sent(std::int64_t offset, std::size_t most = std::string::npos) const {
    api::CopyOrder there = order("there");
    there.offset = offset;
    api::CopyOrder here = order("here");
    here.offset = offset;
    here.to = api::to_json(there);
    const fs::path file = root_ / "stream";
    fs::remove(file);
    EXPECT_TRUE(send_file(here, platform::open_to_append(file)));
    return text_of(file).substr(0, most);
  }
  Result<void> receive(const std::string& stream) {
    const fs::path file = root_ / "received";
    std::ofstream(file, std::ios::binary) << stream;
    return receive_file(*platform::open_to_read(file), [this](std::int64_t have) { have_ = have; });
  }
  std::int64_t there() const {
    api::CopyOrder question = order("there");
    question.files = {{.path = kName, .bytes = question.bytes}};
    const auto looked = look_at_files(question);
    EXPECT_EQ(looked.error, "");
    return looked.files.at(0).whole ? question.bytes : looked.files.at(0).have;
  }

  static constexpr const char* kName = "sub/a 'model' \"x\".gguf";
  const fs::path root_ =
      fs::temp_directory_path() / ("model-copy-" + std::to_string(platform::own_pid()));
  std::string content_;
  std::int64_t have_ = 0;
};

TEST_F(ModelCopy, AWholeFileTakesItsPlaceAndNothingElseIsLeft) {
  ASSERT_TRUE(receive(sent(0)));
  EXPECT_EQ(text_of(root_ / "there" / kName), content_);
  EXPECT_EQ(have_, static_cast<std::int64_t>(content_.size()));
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "there/sub"), {}), 1);
  EXPECT_EQ(hash_file(order("there")).hash, hash_file(order("here")).hash);
}

TEST_F(ModelCopy, WhatCameBeforeABreakIsGoneOnFrom) {
  const auto cut = receive(sent(0, 120'000));
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Code::Unavailable);
  EXPECT_FALSE(fs::exists(root_ / "there" / kName));
  const std::int64_t have = there();
  EXPECT_GT(have, 100'000);
  const std::string rest = sent(have);
  EXPECT_LT(rest.size(), content_.size() - 100'000 + 1000);
  ASSERT_TRUE(receive(rest));
  EXPECT_EQ(text_of(root_ / "there" / kName), content_);
}

TEST_F(ModelCopy, WhatIsNotTheSendersFileIsDropped) {
  (void)receive(sent(0, 120'000));
  const std::int64_t have = there();
  content_[5] ^= 1;  // another file of the same size by now
  std::ofstream(root_ / "here" / kName, std::ios::binary) << content_;
  const auto refused = receive(sent(have));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Conflict);
  EXPECT_EQ(there(), 0);
  EXPECT_FALSE(fs::exists(root_ / "there" / kName));
  ASSERT_TRUE(receive(sent(0)));
  EXPECT_EQ(text_of(root_ / "there" / kName), content_);
  // One that grew is known by its size.
  std::ofstream(root_ / "here" / kName, std::ios::app) << "more";
  EXPECT_FALSE(send_file(order("here"), platform::open_to_append(root_ / "stream")));
}

TEST_F(ModelCopy, NoPathLeadsOutOfTheModelsFolder) {
  const fs::path dir = root_ / "there";
  fs::create_directories(root_ / "elsewhere");
  fs::create_directory_symlink(root_ / "elsewhere", dir / "out");
  fs::create_symlink(root_ / "elsewhere" / "b.gguf", dir / "b.gguf");
  fs::create_symlink("b2.gguf", dir / "c.gguf");
  for (const char* bad : {"", "/etc/a.gguf", "../a.gguf", "x/../../a.gguf", "./a.gguf", "a.txt",
                          "sub/", "out/a.gguf", "out/x/a.gguf", "b.gguf"}) {
    EXPECT_FALSE(model::place_for(bad, dir, model::Folders::Made)) << bad;
  }
  EXPECT_FALSE(fs::exists(root_ / "elsewhere" / "x"));
  const auto good = model::place_for("-x/new\nline.gguf", dir, model::Folders::Made);
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(good->parent_path(), fs::canonical(dir) / "-x");
  EXPECT_FALSE(model::place_for("a.gguf", root_ / "none", model::Folders::Made));
}

TEST_F(ModelCopy, OneCopyAtATimeWritesAFile) {
  const auto place = model::place_for(kName, root_ / "there", model::Folders::Made);
  const auto held = platform::open_part(model::part_file(*place));
  ASSERT_TRUE(held);
  const auto second = receive(sent(0));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::Conflict);
}

// A pipe that nobody reads any more, as sshd leaves it when the gateway's ssh is gone.
platform::Fd abandoned() {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const platform::Fd read(ends[0]);
  return platform::Fd(ends[1]);
}

TEST_F(ModelCopy, NoFileIsReadForAnAskerThatIsGone) {
  const platform::Fd gone = abandoned();
  const auto hashed = hash_file(order("here"), &gone);
  EXPECT_EQ(hashed.hash, "");
  EXPECT_NE(hashed.error.find("nobody waits"), std::string::npos) << hashed.error;
}

TEST_F(ModelCopy, WhatCameBeforeIsNotReadForAnAskerThatIsGoneAndStays) {
  (void)receive(sent(0, 120'000));
  const std::int64_t have = there();
  const fs::path file = root_ / "received";
  std::ofstream(file, std::ios::binary) << sent(have);
  const platform::Fd gone = abandoned();
  const auto cancelled =
      receive_file(*platform::open_to_read(file), [](std::int64_t) { FAIL(); }, &gone);
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code, Code::Cancelled);
  EXPECT_EQ(there(), have);
}

TEST_F(ModelCopy, AModelsFilesAreListedByTheirNamesInTheFolder) {
  fs::remove_all(root_ / "here" / "sub");
  for (const char* name : {"s-00001-of-00002.gguf", "s-00002-of-00002.gguf"})
    std::ofstream(root_ / "here" / name) << name;
  api::CopyOrder question;
  question.models_dir = root_ / "here";
  question.model = "s-00001-of-00002.gguf";
  const auto listed = list_files(question);
  ASSERT_EQ(listed.files.size(), 2U) << listed.error;
  EXPECT_EQ(listed.files[1].path, "s-00002-of-00002.gguf");
  EXPECT_EQ(listed.files[1].bytes, 21);
  question.model = "none.gguf";
  EXPECT_NE(list_files(question).error, "");
  question.model = root_ / "here" / "s-00001-of-00002.gguf";
  EXPECT_NE(list_files(question).error, "");
}

}  // namespace
}  // namespace flotilla::agent
