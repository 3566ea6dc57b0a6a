#include <cstdlib>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "platform/file_lock.h"
#include "platform/files.h"
#include "platform/socket_dir.h"

namespace flotilla::platform {
namespace {

namespace fs = std::filesystem;

class Directories : public testing::Test {
 protected:
  Directories() {
    char name[] = "/tmp/flotilla-test-XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~Directories() override { fs::remove_all(root_); }
  static unsigned mode(const fs::path& path) {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 0777U : 0U;
  }
  fs::path root_;
};

TEST_F(Directories, AShortOwnerKeepsItsSocketsItself) {
  const auto dir = make_socket_dir(root_ / "state");
  ASSERT_TRUE(dir) << dir.error().message;
  EXPECT_EQ(*dir, root_ / "state" / "s");
  EXPECT_EQ(mode(*dir), 0700U);
  EXPECT_EQ(*make_socket_dir(root_ / "state"), *dir);
}

TEST_F(Directories, ALongOwnerGetsAShortPrivateDirectoryOfItsOwn) {
  ::setenv("XDG_RUNTIME_DIR", root_.c_str(), 1);
  const fs::path owner = root_ / std::string(120, 'x');
  const auto dir = make_socket_dir(owner);
  ASSERT_TRUE(dir) << dir.error().message;
  EXPECT_EQ(dir->parent_path(), root_);
  EXPECT_LE(dir->native().size() + 1 + kSocketNameMax, kSocketPathMax);
  EXPECT_EQ(mode(*dir), 0700U);
  EXPECT_EQ(*make_socket_dir(owner), *dir);
  EXPECT_NE(*make_socket_dir(owner / "other"), *dir);
  ::unsetenv("XDG_RUNTIME_DIR");
}

TEST_F(Directories, AnOwnerThatSshCouldNotNameGetsOneThatItCan) {
  ::setenv("XDG_RUNTIME_DIR", root_.c_str(), 1);
  for (const char* home : {"jo@corp", "Jo Doe", "J\xc3\xb6rg", "a:b", "100%"}) {
    const auto dir = make_socket_dir(root_ / home);
    ASSERT_TRUE(dir) << home << ": " << dir.error().message;
    EXPECT_EQ(dir->parent_path(), root_) << home;
    EXPECT_EQ(mode(*dir), 0700U);
  }
  ::unsetenv("XDG_RUNTIME_DIR");
}

TEST_F(Directories, ALinkInThePlaceOfADirectoryIsRefused) {
  fs::create_directory(root_ / "elsewhere");
  fs::create_directory_symlink(root_ / "elsewhere", root_ / "private");
  const auto made = make_private_dir(root_ / "private");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::PermissionDenied);
}

TEST_F(Directories, AnOpenDirectoryOfOursIsClosed) {
  fs::create_directory(root_ / "open");
  fs::permissions(root_ / "open", fs::perms::all);
  ASSERT_TRUE(make_private_dir(root_ / "open"));
  EXPECT_EQ(mode(root_ / "open"), 0700U);
}

TEST_F(Directories, ADirectoryOfAnotherIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a directory away";
  fs::create_directory(root_ / "theirs");
  ASSERT_EQ(::chown((root_ / "theirs").c_str(), 1, 1), 0);
  ASSERT_FALSE(make_private_dir(root_ / "theirs"));
}

TEST_F(Directories, ALockHasOneHolderWhoIsNamed) {
  const fs::path file = root_ / "lock";
  {
    auto first = FileLock::acquire(file, "pid 1, port 8000");
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(mode(file), 0600U);
    const auto second = FileLock::acquire(file, "pid 2");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::Conflict);
    EXPECT_NE(second.error().message.find("pid 1, port 8000"), std::string::npos);
    first->describe("pid 1");
    EXPECT_EQ(read_lock_holder(file), "pid 1");
    FileLock moved = std::move(*first);
    EXPECT_FALSE(FileLock::acquire(file, "pid 2"));
  }
  EXPECT_TRUE(FileLock::acquire(file, "pid 2"));
  EXPECT_EQ(read_lock_holder(file), "pid 2");
}

TEST_F(Directories, FilesAreAppendedTo) {
  const fs::path file = root_ / "log";
  write_some(open_to_append(file), "one\n");
  const Fd fd = open_to_append(file);
  write_some(fd, "two\n");
  EXPECT_EQ(file_bytes(fd), 8);
  EXPECT_EQ(mode(file), 0600U);
  write_some(Fd(), "nowhere");
  EXPECT_FALSE(open_to_append(root_ / "missing" / "log"));
}

}  // namespace
}  // namespace flotilla::platform
