#include "platform/process.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <gtest/gtest.h>

namespace flotilla::platform {
namespace {

// Reads a non-blocking descriptor to its end.
std::string read_all(const Fd& fd) {
  std::string text;
  char chunk[4096];
  for (;;) {
    pollfd ready{fd.get(), POLLIN, 0};
    if (::poll(&ready, 1, 5000) <= 0) return text + "<nothing for 5 s>";
    const ssize_t count = ::read(fd.get(), chunk, sizeof chunk);
    if (count <= 0) return text;
    text.append(chunk, static_cast<std::size_t>(count));
  }
}

Command command(const char* program, std::vector<std::string> arguments) {
  Command out;
  out.program = program;
  out.arguments = std::move(arguments);
  return out;
}

TEST(Process, PipesCarryBothWays) {
  auto cat = Process::spawn(command("/bin/cat", {}));
  ASSERT_TRUE(cat) << cat.error().message;
  ASSERT_EQ(::write(cat->in.get(), "hello", 5), 5);
  cat->in.reset();
  EXPECT_EQ(read_all(cat->out), "hello");
  EXPECT_EQ(cat->wait().exit_code, 0);
}

TEST(Process, OnesOutputIsAnothersInput) {
  auto echo = Process::spawn(command("/bin/echo", {"from one"}));
  ASSERT_TRUE(echo);
  Command cat = command("/bin/cat", {});
  cat.in_fd = echo->out.get();
  auto other = Process::spawn(cat);
  ASSERT_TRUE(other) << other.error().message;
  echo->out.reset();
  EXPECT_EQ(read_all(other->out), "from one\n");
}

TEST(Process, WritingToADeadChildIsAnError) {
  auto dead = Process::spawn(command("/bin/true", {}));
  ASSERT_TRUE(dead) << dead.error().message;
  dead->wait();
  EXPECT_EQ(::write(dead->in.get(), "hello", 5), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST(Process, ArgumentsReachTheProgramUntouchedByAnyShell) {
  auto echo = Process::spawn(command("/bin/echo", {"$HOME;", "a  b", "`id`"}));
  ASSERT_TRUE(echo);
  EXPECT_EQ(read_all(echo->out), "$HOME; a  b `id`\n");
}

TEST(Process, EnvironmentIsAddedAndReplaced) {
  ::setenv("FLOTILLA_TEST_A", "old", 1);
  ::setenv("FLOTILLA_TEST_B", "kept", 1);
  Command env = command("env", {});
  env.env = {{"FLOTILLA_TEST_A", "new"}, {"FLOTILLA_TEST_C", "x=y"}};
  auto process = Process::spawn(env);
  ASSERT_TRUE(process);
  const std::string text = read_all(process->out);
  EXPECT_NE(text.find("FLOTILLA_TEST_A=new\n"), std::string::npos);
  EXPECT_EQ(text.find("FLOTILLA_TEST_A=old\n"), std::string::npos);
  EXPECT_NE(text.find("FLOTILLA_TEST_B=kept\n"), std::string::npos);
  EXPECT_NE(text.find("FLOTILLA_TEST_C=x=y\n"), std::string::npos);
}

TEST(Process, TheChildHasNoFileOfOursButItsThree) {
  const Fd leak(::dup(1));  // not close-on-exec
  auto ls = Process::spawn(command("/bin/ls", {"/proc/self/fd"}));
  ASSERT_TRUE(ls);
  // 3 is the directory that ls itself reads.
  EXPECT_EQ(read_all(ls->out), "0\n1\n2\n3\n");
}

TEST(Process, RunsInItsWorkingDirectoryAndItsOwnGroup) {
  Command pwd = command("/bin/pwd", {});
  pwd.working_dir = "/usr";
  auto process = Process::spawn(pwd);
  ASSERT_TRUE(process);
  EXPECT_EQ(read_all(process->out), "/usr\n");
  auto sleeper = Process::spawn(command("/bin/sleep", {"30"}));
  ASSERT_TRUE(sleeper);
  EXPECT_EQ(::getpgid(sleeper->pid()), sleeper->pid());
}

TEST(Process, TheEndIsSeenAtTheExitDescriptor) {
  auto sleeper = Process::spawn(command("/bin/sleep", {"30"}));
  ASSERT_TRUE(sleeper);
  EXPECT_FALSE(sleeper->poll());
  pollfd ready{sleeper->exit_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
  sleeper->signal(SIGTERM);
  EXPECT_EQ(::poll(&ready, 1, 5000), 1);
  const auto status = sleeper->poll();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->signal, SIGTERM);
  EXPECT_EQ(describe(*status), "signal 15 (SIGTERM)");
  EXPECT_FALSE(sleeper->running());
  sleeper->signal(SIGTERM);  // nothing is there to be hit
}

TEST(Process, ExitCodesAndMissingProgramsAreTold) {
  auto fails = Process::spawn(command("false", {}));
  ASSERT_TRUE(fails);
  EXPECT_EQ(fails->wait().exit_code, 1);
  const auto missing = Process::spawn(command("/no/such/program", {}));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::NotFound);
  EXPECT_NE(missing.error().message.find("/no/such/program"), std::string::npos);
}

TEST(Process, DestructionLeavesNeitherProcessNorZombie) {
  int pid = 0;
  {
    auto sleeper = Process::spawn(command("/bin/sleep", {"30"}));
    ASSERT_TRUE(sleeper);
    pid = sleeper->pid();
    Process moved = std::move(*sleeper);
    EXPECT_FALSE(sleeper->running());
    EXPECT_TRUE(moved.running());
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(Process, ReleasedItLivesOn) {
  auto sleeper = Process::spawn(command("/bin/sleep", {"30"}));
  ASSERT_TRUE(sleeper);
  const int pid = sleeper->pid();
  sleeper->release();
  *sleeper = Process();
  EXPECT_EQ(::kill(pid, 0), 0);
  ::kill(pid, SIGKILL);
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
}

TEST(Process, ExecutablePathIsThisProgram) {
  EXPECT_EQ(executable_path().filename(), "platform_test");
}

#if defined(__linux__)
// A limit of 0 holds for files alone: a pattern that names a program gets the dump all the same.
TEST(CoreDumps, GoNeitherToAFileNorToAProgram) {
  const auto dumps = [] {
    leave_no_core_dumps();
    rlimit limit{.rlim_cur = 1, .rlim_max = 1};
    ::getrlimit(RLIMIT_CORE, &limit);
    std::_Exit(limit.rlim_max == 0 && ::prctl(PR_GET_DUMPABLE) == 0 ? 0 : 1);
  };
  EXPECT_EXIT(dumps(), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace flotilla::platform
