#include "platform/first_line.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

namespace flotilla::platform {
namespace {

namespace fs = std::filesystem;

struct FirstLine : testing::Test {
  FirstLine() {
    std::string name = testing::TempDir() + "/flotilla-line-XXXXXX";
    root = ::mkdtemp(name.data());
  }
  ~FirstLine() override { fs::remove_all(root); }

  fs::path make(const std::string& content) {
    std::ofstream(root / "file", std::ios::binary) << content;
    return root / "file";
  }
  // What is there, or what is complained of.
  std::string read(const fs::path& file) {
    const auto line = read_first_line(file, [this] { ++waits; });
    return line ? *line : "refused: " + line.error().message;
  }

  fs::path root;
  int waits = 0;
};

TEST_F(FirstLine, IsWhatAFileBeginsWith) {
  EXPECT_EQ(read(make("token")), "token");
  EXPECT_EQ(read(make("token\r\nmore\n")), "token");
  EXPECT_EQ(read(make(" two words \n")), " two words ");
  const std::string longest(kFirstLineMax, 'x');
  EXPECT_EQ(read(make(longest)), longest);
  EXPECT_EQ(read(make(longest + "\n" + longest)), longest);
  EXPECT_EQ(waits, 0);
}

TEST_F(FirstLine, IsRefusedWhereItIsTooLongOrMissing) {
  const std::string file = (root / "file").string();
  for (const std::string& much : {std::string(kFirstLineMax + 1, 'x'), std::string(1 << 20, 'x')})
    EXPECT_EQ(read(make(much)), "refused: " + file + " has a first line of more than 4096 bytes");
  EXPECT_EQ(read(make("")), "refused: " + file + " has an empty first line");
  EXPECT_EQ(read(make("\ntoken")), "refused: " + file + " has an empty first line");
  EXPECT_EQ(read(root / "none"),
            "refused: " + (root / "none").string() + " cannot be read: No such file or directory");
}

TEST_F(FirstLine, IsNotLookedForInWhatHasNoEnd) {
  for (const char* endless : {"/dev/zero", "/dev/null"}) {
    EXPECT_EQ(read(endless), std::string("refused: ") + endless + " is neither a file nor a pipe");
  }
  EXPECT_EQ(read(root), "refused: " + root.string() + " is neither a file nor a pipe");
}

TEST_F(FirstLine, ComesOutOfAPipe) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "token\n", 6), 6);
  ::close(ends[1]);
  const std::string fd_path = "/dev/fd/" + std::to_string(ends[0]);
  EXPECT_EQ(read(fd_path), "token");
  EXPECT_EQ(read(fd_path).find("refused: "), 0U) << "the writer has gone";
  ::close(ends[0]);
  EXPECT_EQ(waits, 0);
}

TEST_F(FirstLine, OfANamedPipeIsWaitedForAndThatIsSaid) {
  const fs::path pipe = root / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer;
  const auto line = read_first_line(pipe, [&] {
    ++waits;
    writer = std::thread([&pipe] { std::ofstream(pipe) << "token\n"; });
  });
  writer.join();
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(*line, "token");
  EXPECT_EQ(waits, 1);
}

}  // namespace
}  // namespace flotilla::platform
