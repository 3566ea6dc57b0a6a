#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/task.h"
#include "nodes/child_run.h"
#include "nodes/child_stop.h"
#include "platform/process.h"

namespace flotilla::nodes {

// Two programs, the first's output being the second's input: what goes from one to the other does
// not come by us.
struct ChildPipe {
  platform::Command from = {};
  std::string from_text = {};  // what the first reads
  platform::Command to = {};
  std::function<void(std::string line)> on_line = {};  // that the second says
  std::chrono::milliseconds silence{};                 // of the second, which ends both
  Stop* stop = nullptr;                                // outlives it
};
struct ChildPipeEnd {
  ChildOutput from;
  ChildOutput to;
  bool whole = false;  // both ended by themselves
};
Task<ChildPipeEnd> run_pipe(Executor executor, ChildPipe pipe);

}  // namespace flotilla::nodes
