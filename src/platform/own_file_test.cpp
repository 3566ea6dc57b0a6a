#include "platform/own_file.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace flotilla::platform {
namespace {

namespace fs = std::filesystem;

struct OwnFile : testing::Test {
  OwnFile() {
    std::string name = testing::TempDir() + "/flotilla-own-XXXXXX";
    root = fs::canonical(::mkdtemp(name.data()));
    for (const char* folder : {"a", "a/b", "other"}) fs::create_directory(root / folder);
    for (const char* folder : {"a", "a/b", "other"}) mode(folder, 0755);
    make("a/b/token");
  }
  ~OwnFile() override { fs::remove_all(root); }

  void make(const char* name) {
    std::ofstream(root / name) << "secret\n";
    mode(name, 0600);
  }
  void mode(const char* name, mode_t bits) { ASSERT_EQ(::chmod((root / name).c_str(), bits), 0); }
  // What is complained of; "" = nothing.
  std::string complaint(const char* name) {
    const auto checked = check_others_cannot_write(root / name);
    if (checked) return "";
    EXPECT_EQ(checked.error().code, Code::InvalidArgument);
    return checked.error().message;
  }
  std::string of(const char* name, const char* bits) {
    const std::string path = (root / name).string();
    return "other users of this machine may write " + path + " (mode " + bits + "); chmod go-w " +
           path;
  }

  fs::path root;
};

TEST_F(OwnFile, that_others_may_write_is_refused) {
  EXPECT_EQ(complaint("a/b/token"), "");
  mode("a/b/token", 0644);
  EXPECT_EQ(complaint("a/b/token"), "") << "to read is another matter";
  mode("a/b/token", 0620);
  EXPECT_EQ(complaint("a/b/token"), of("a/b/token", "0620"));
  mode("a/b/token", 0602);
  EXPECT_EQ(complaint("a/b/token"), of("a/b/token", "0602"));
}

TEST_F(OwnFile, that_others_may_replace_by_a_folder_on_its_way_is_refused) {
  mode("a/b", 0775);
  EXPECT_EQ(complaint("a/b/token"), of("a/b", "0775"));
  mode("a/b", 0755);
  mode("a", 0757);
  EXPECT_EQ(complaint("a/b/token"), of("a", "0757"));
  mode("a", 01777);
  EXPECT_EQ(complaint("a/b/token"), "") << "there one replaces one's own only";
  mode("a/b/token", 01602);
  EXPECT_NE(complaint("a/b/token"), "") << "of a file the bit says nothing";
}

// Whoever made /tmp/token first would say what the token is.
TEST_F(OwnFile, in_a_shared_folder_nothing_on_the_way_is_anothers) {
  constexpr std::uint32_t kSomebody = 54321;
  constexpr std::uint32_t kUs = 54322;
  const std::uint32_t maker = ::geteuid() == 0 ? kSomebody : ::geteuid();
  fs::create_symlink(root / "other", root / "a/link");
  make("other/token");
  for (const char* name : {"a/b", "a/link"}) {
    if (maker == kSomebody) {
      ASSERT_EQ(::lchown((root / name).c_str(), maker, static_cast<gid_t>(-1)), 0);
    }
  }
  const auto said = [this](const char* name, std::uint32_t user) {
    const auto checked = check_others_cannot_write(root / name, user);
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_EQ(said("a/b/token", maker), "");
  mode("a", 01777);
  EXPECT_EQ(said("a/b/token", maker), "") << "it is one's own";
  for (const auto& [name, culprit] : {std::pair("a/b/token", "a/b"), {"a/link/token", "a/link"}}) {
    EXPECT_EQ(said(name, kUs),
              "another user of this machine (uid " + std::to_string(maker) + ") has made " +
                  (root / culprit).string() +
                  ", in a folder where anyone may; remove it or keep the file elsewhere");
  }
}

TEST_F(OwnFile, a_link_is_as_safe_as_its_place_and_its_end) {
  fs::create_symlink(root / "a/b/token", root / "other/link");
  EXPECT_EQ(complaint("other/link"), "");
  mode("other", 0777);
  EXPECT_EQ(complaint("other/link"), of("other", "0777"));
  mode("other", 0755);
  mode("a/b", 0777);
  EXPECT_EQ(complaint("other/link"), of("a/b", "0777"));
}

TEST_F(OwnFile, what_is_not_there_is_named) {
  const auto checked = check_others_cannot_write(root / "none");
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::Unavailable);
  EXPECT_NE(checked.error().message.find("none cannot be looked at"), std::string::npos);
}

TEST_F(OwnFile, a_pipe_is_nobodys_file) {
  ASSERT_EQ(::mkfifo((root / "pipe").c_str(), 0600), 0);
  mode("pipe", 0666);
  EXPECT_EQ(complaint("pipe"), "");
}

}  // namespace
}  // namespace flotilla::platform
