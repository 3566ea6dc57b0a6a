#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "platform/fd.h"

namespace flotilla::platform {

enum class Stdio { Null, Inherit, Pipe };

// A program to start: no shell between, and of our open files the child gets only its three.
struct Command {
  std::filesystem::path program = {};           // searched in PATH if it has no slash
  std::vector<std::string> arguments = {};      // without the program's name
  std::map<std::string, std::string> env = {};  // added to ours
  std::filesystem::path working_dir = {};       // empty = ours
  Stdio in = Stdio::Pipe;
  std::filesystem::path in_file = {};  // not empty: stdin is this file, from in_offset on
  std::int64_t in_offset = 0;
  int in_fd =
      -1;  // not -1: stdin is what this one of ours reads from; to be closed after the spawn
  Stdio out = Stdio::Pipe;
  Stdio err = Stdio::Pipe;
};

struct ExitStatus {
  std::optional<int> exit_code = {};
  std::optional<int> signal = {};
};
std::string describe(const ExitStatus& status);  // "exit code 1", "signal 11 (SIGSEGV)"
std::string signal_name(int signal);             // "SIGSEGV"; "signal 77" if it has none

// A child process in its own process group. Destroyed while it runs: its group is killed and it is
// reaped, so no zombie and no orphan remains. One thread at a time.
class Process {
 public:
  static Result<Process> spawn(const Command& command);
  Process() = default;
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  int pid() const { return pid_; }
  // Ours, non-blocking; to be moved out by whoever reads and writes them. Writing to a child that
  // is gone is EPIPE: whoever starts one with a pipe to it ignores SIGPIPE from then on.
  Fd in;
  Fd out;
  Fd err;
  // Becomes readable when the process ended; then poll() has its status. Valid until destruction.
  int exit_fd() const { return exit_fd_.get(); }

  bool running() const { return pid_ > 0 && !status_; }
  // To the whole group; nothing if it has ended.
  void signal(int signal);
  // Reaps without waiting; nullopt while it runs.
  std::optional<ExitStatus> poll();
  ExitStatus wait();
  // Lets it go: it goes on without us, and destroying this does nothing.
  void release();

 private:
  int pid_ = -1;
  Fd exit_fd_;
  std::optional<ExitStatus> status_;
};

// Of ours and of what is started from here on. Before threads start.
void set_environment(const char* name, const std::string& value);
void remove_environment(const char* name);

std::filesystem::path executable_path();
int own_pid();
// A core dump would hold prompts, answers and secrets: from now on neither this process nor what it
// starts leaves one, and nobody but root attaches to this one.
void leave_no_core_dumps();

}  // namespace flotilla::platform
