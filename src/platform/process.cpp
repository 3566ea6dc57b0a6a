#include "platform/process.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#if defined(__APPLE__)
#include <mach-o/dyld.h>
#include <sys/event.h>
#else
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "base/check.h"
#include "platform/files.h"

extern "C" char** environ;

namespace flotilla::platform {
namespace {

struct SpawnSettings {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  SpawnSettings() {
    CHECK(posix_spawn_file_actions_init(&actions) == 0);
    CHECK(posix_spawnattr_init(&attributes) == 0);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

void set_flags(int fd) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

// `child` is what the spawn duplicates onto `target`. Only our end is non-blocking: that flag
// belongs to the open file, and programs do not expect it on theirs.
Result<void> set_stdio(SpawnSettings& settings, Stdio kind, int target, Fd& ours, Fd& child) {
  if (kind == Stdio::Inherit) return {};
  if (kind == Stdio::Null) {
    child = Fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!child) return fail(Code::Internal, fmt::format("/dev/null: {}", std::strerror(errno)));
  } else {
    int ends[2];
#if defined(__APPLE__)
    if (::pipe(ends) != 0)
#else
    if (::pipe2(ends, O_CLOEXEC) != 0)
#endif
      return fail(Code::Unavailable, fmt::format("no pipe: {}", std::strerror(errno)));
    const bool child_reads = target == STDIN_FILENO;
    child = Fd(ends[child_reads ? 0 : 1]);
    ours = Fd(ends[child_reads ? 1 : 0]);
    ::fcntl(child.get(), F_SETFD, FD_CLOEXEC);
    set_flags(ours.get());
    // A child may die before it has read what we write: that is an error of the write, not our end.
    if (child_reads) ignore_broken_pipes();
  }
  // A descriptor that already is the target would keep its close-on-exec flag: move it away.
  if (child.get() <= STDERR_FILENO) child = Fd(::fcntl(child.get(), F_DUPFD_CLOEXEC, 3));
  if (posix_spawn_file_actions_adddup2(&settings.actions, child.get(), target) != 0)
    return fail(Code::Internal, "posix_spawn_file_actions_adddup2 failed");
  return {};
}

Result<void> set_input_file(SpawnSettings& settings, const Command& command, Fd& child) {
  child = Fd(::open(command.in_file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!child || ::lseek(child.get(), command.in_offset, SEEK_SET) < 0)
    return fail(Code::NotFound,
                fmt::format("{}: {}", command.in_file.string(), std::strerror(errno)));
  if (child.get() <= STDERR_FILENO) child = Fd(::fcntl(child.get(), F_DUPFD_CLOEXEC, 3));
  if (posix_spawn_file_actions_adddup2(&settings.actions, child.get(), STDIN_FILENO) != 0)
    return fail(Code::Internal, "posix_spawn_file_actions_adddup2 failed");
  return {};
}

// The open file is shared with us from now on, so it must block as programs expect.
Result<void> set_input_fd(SpawnSettings& settings, int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  if (posix_spawn_file_actions_adddup2(&settings.actions, fd, STDIN_FILENO) != 0)
    return fail(Code::Internal, "posix_spawn_file_actions_adddup2 failed");
  return {};
}

// Own group, default signals, nothing blocked, no other file open.
void set_attributes(SpawnSettings& settings) {
  sigset_t all;
  sigset_t none;
  sigfillset(&all);
  sigdelset(&all, SIGKILL);
  sigdelset(&all, SIGSTOP);
  sigemptyset(&none);
  posix_spawnattr_setsigdefault(&settings.attributes, &all);
  posix_spawnattr_setsigmask(&settings.attributes, &none);
  posix_spawnattr_setpgroup(&settings.attributes, 0);
  short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
#if defined(__APPLE__)
  flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
#else
  posix_spawn_file_actions_addclosefrom_np(&settings.actions, 3);
#endif
  posix_spawnattr_setflags(&settings.attributes, flags);
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> merged;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) merged.push_back(text);
  }
  for (const auto& [name, value] : added) merged.push_back(fmt::format("{}={}", name, value));
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

Fd watch_exit(int pid) {
#if defined(__APPLE__)
  Fd queue(::kqueue());
  if (!queue) return queue;
  ::fcntl(queue.get(), F_SETFD, FD_CLOEXEC);
  struct kevent change;
  EV_SET(&change, static_cast<uintptr_t>(pid), EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, nullptr);
  if (::kevent(queue.get(), &change, 1, nullptr, 0, nullptr) != 0) queue.reset();
  return queue;
#else
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));  // close-on-exec by itself
#endif
}

ExitStatus to_exit_status(int status) {
  if (WIFSIGNALED(status)) return {.exit_code = std::nullopt, .signal = WTERMSIG(status)};
  return {.exit_code = WEXITSTATUS(status), .signal = std::nullopt};
}

}  // namespace

std::string signal_name(int signal) {
  switch (signal) {
    case SIGHUP: return "SIGHUP";
    case SIGINT: return "SIGINT";
    case SIGQUIT: return "SIGQUIT";
    case SIGILL: return "SIGILL";
    case SIGABRT: return "SIGABRT";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGKILL: return "SIGKILL";
    case SIGSEGV: return "SIGSEGV";
    case SIGPIPE: return "SIGPIPE";
    case SIGTERM: return "SIGTERM";
    default: return fmt::format("signal {}", signal);
  }
}

std::string describe(const ExitStatus& status) {
  if (status.signal)
    return fmt::format("signal {} ({})", *status.signal, signal_name(*status.signal));
  return fmt::format("exit code {}", status.exit_code.value_or(-1));
}

Result<Process> Process::spawn(const Command& command) {
  SpawnSettings settings;
  Process process;
  Fd child_in;
  Fd child_out;
  Fd child_err;
  const auto set_in = command.in_fd >= 0 ? set_input_fd(settings, command.in_fd)
                      : command.in_file.empty()
                          ? set_stdio(settings, command.in, STDIN_FILENO, process.in, child_in)
                          : set_input_file(settings, command, child_in);
  if (!set_in) return fail(set_in.error());
  if (auto set = set_stdio(settings, command.out, STDOUT_FILENO, process.out, child_out); !set)
    return fail(set.error());
  if (auto set = set_stdio(settings, command.err, STDERR_FILENO, process.err, child_err); !set)
    return fail(set.error());
  if (!command.working_dir.empty())
    posix_spawn_file_actions_addchdir_np(&settings.actions, command.working_dir.c_str());
  set_attributes(settings);

  std::vector<std::string> arguments = {command.program.string()};
  arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> environment = merged_environment(command.env);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, command.program.c_str(), &settings.actions,
                                   &settings.attributes, argv.data(), envp.data());
  if (error != 0) {
    const Code code = error == ENOENT ? Code::NotFound : Code::Unavailable;
    return fail(code,
                fmt::format("cannot start {}: {}", command.program.string(), std::strerror(error)));
  }
  process.pid_ = pid;
  process.exit_fd_ = watch_exit(pid);
  if (!process.exit_fd_)  // the destructor ends the child
    return fail(Code::Unavailable,
                fmt::format("cannot watch pid {}: {}", pid, std::strerror(errno)));
  return process;
}

Process::Process(Process&& other) noexcept
    : in(std::move(other.in)),
      out(std::move(other.out)),
      err(std::move(other.err)),
      pid_(std::exchange(other.pid_, -1)),
      exit_fd_(std::move(other.exit_fd_)),
      status_(std::exchange(other.status_, std::nullopt)) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    Process old(std::move(*this));
    in = std::move(other.in);
    out = std::move(other.out);
    err = std::move(other.err);
    pid_ = std::exchange(other.pid_, -1);
    exit_fd_ = std::move(other.exit_fd_);
    status_ = std::exchange(other.status_, std::nullopt);
  }
  return *this;
}

Process::~Process() {
  if (!running()) return;
  signal(SIGKILL);
  wait();
}

// The pid cannot be another's: it stays taken until we reap it.
void Process::signal(int signal) {
  if (running()) ::kill(-pid_, signal);
}

std::optional<ExitStatus> Process::poll() {
  if (pid_ <= 0 || status_) return status_;
  int status = 0;
  pid_t got = -1;
  do got = ::waitpid(pid_, &status, WNOHANG);
  while (got < 0 && errno == EINTR);
  if (got == pid_) status_ = to_exit_status(status);
  if (got < 0) status_ = ExitStatus{.exit_code = -1, .signal = std::nullopt};  // reaped by another
  return status_;
}

ExitStatus Process::wait() {
  CHECK(pid_ > 0);
  if (status_) return *status_;
  int status = 0;
  pid_t got = -1;
  do got = ::waitpid(pid_, &status, 0);
  while (got < 0 && errno == EINTR);
  status_ =
      got == pid_ ? to_exit_status(status) : ExitStatus{.exit_code = -1, .signal = std::nullopt};
  return *status_;
}

void Process::release() {
  pid_ = -1;
  status_.reset();
  exit_fd_.reset();
}

void set_environment(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);
}

void remove_environment(const char* name) { ::unsetenv(name); }

std::filesystem::path executable_path() {
#if defined(__APPLE__)
  std::string path(4096, '\0');
  auto size = static_cast<std::uint32_t>(path.size());
  if (_NSGetExecutablePath(path.data(), &size) != 0) return {};
  path.resize(std::strlen(path.c_str()));
  std::error_code ignored;
  const auto real = std::filesystem::canonical(path, ignored);
  return real.empty() ? std::filesystem::path(path) : real;
#else
  // A program that was replaced while it runs (an upgrade) shows " (deleted)": the new one is
  // meant.
  std::error_code ignored;
  std::string path = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path;
#endif
}

int own_pid() { return ::getpid(); }

void leave_no_core_dumps() {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &none);
#if defined(__linux__)
  ::prctl(PR_SET_DUMPABLE, 0);  // also where dumps go to a program
#endif
}

}  // namespace flotilla::platform
