#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/task.h"
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

// Runs a program to its end. Without an in_file its stdin is empty. DeadlineExceeded: it was
// killed.
struct ChildRun {
  platform::Command command = {};
  std::chrono::milliseconds limit{};
};
Task<ChildOutput> run_child(Executor executor, ChildRun run);

}  // namespace flotilla::nodes
