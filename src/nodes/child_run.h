#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/task.h"
#include "nodes/child_stop.h"
#include "platform/process.h"

namespace flotilla::nodes {

struct ChildOutput {
  platform::ExitStatus status;
  std::string out;               // at most 64 KiB
  std::vector<std::string> err;  // its last lines
  bool ok() const { return status.exit_code == 0; }
  // "exit code 255: LAST LINE"
  std::string failure() const;
};

// What a pipe takes at once, so that nobody waits for a program that does not read.
inline constexpr std::size_t kInTextMax = std::size_t{60} << 10;
Result<void> check_in_text(const std::string& text);

// Runs a program to its end. Without an in_file or in_text its stdin is empty. DeadlineExceeded and
// Cancelled (`stop`, which outlives it): it was killed.
struct ChildRun {
  platform::Command command = {};
  std::string in_text = {};
  std::chrono::milliseconds limit{};
  Stop* stop = nullptr;
};
Task<ChildOutput> run_child(Executor executor, ChildRun run);

}  // namespace flotilla::nodes
