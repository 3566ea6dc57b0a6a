#include "platform/held_program.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "platform/process.h"

#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace flotilla::platform {
namespace {

constexpr int kCannotStart = 127;

void on_child(int) {}

// Between fork and exec: nothing that allocates.
[[noreturn]] void become(char* const* words, const sigset_t& mask) {
#if defined(__linux__)
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // we may be killed, too
#endif
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGCHLD}) ::signal(signal, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::execvp(words[0], words);
  const char* why = std::strerror(errno);
  for (const char* part : {"cannot start ", const_cast<const char*>(words[0]), ": ", why, "\n"})
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  ::_exit(kCannotStart);
}

// Waits for stdin or a signal. true: stdin has ended.
bool wait_for_news(bool listen, const timespec* limit, const sigset_t& mask) {
  fd_set set;
  FD_ZERO(&set);
  if (listen) FD_SET(STDIN_FILENO, &set);
  if (::pselect(listen ? STDIN_FILENO + 1 : 0, &set, nullptr, nullptr, limit, &mask) <= 0)
    return false;
  std::array<char, 256> ignored{};
  const ssize_t got = ::read(STDIN_FILENO, ignored.data(), ignored.size());
  return got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
}

int end_as(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  leave_no_core_dumps();
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, WTERMSIG(status));
  ::signal(WTERMSIG(status), SIG_DFL);
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  ::raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

}  // namespace

int hold_program(const std::vector<std::string>& words, std::chrono::milliseconds grace) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);

  ::setpgid(0, 0);  // whoever started us is no part of what we end
  // SIGCHLD comes only while we wait, so none is missed between a look and the wait.
  sigset_t before;
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, &before);
  ::signal(SIGCHLD, on_child);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);

  const pid_t pid = ::fork();
  if (pid < 0) {
    std::perror("cannot fork");
    return kCannotStart;
  }
  if (pid == 0) become(argv.data(), before);

  const SystemClock clock;
  bool ending = false;
  Instant until{};
  for (;;) {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) == pid) {
      // Nobody else is there to end what it started.
      if (ending) ::kill(0, SIGKILL);
      return end_as(status);
    }
    timespec left{};
    if (ending) {
      const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(until - clock.now());
      if (rest.count() <= 0) ::kill(0, SIGKILL);
      left.tv_sec = static_cast<time_t>(rest.count() / 1'000'000'000);
      left.tv_nsec = static_cast<long>(rest.count() % 1'000'000'000);
    }
    if (!wait_for_news(!ending, ending ? &left : nullptr, before)) continue;
    ending = true;
    until = clock.now() + grace;
    ::kill(0, SIGTERM);
  }
}

}  // namespace flotilla::platform
