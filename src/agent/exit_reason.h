#pragma once

#include <cstdint>
#include <string>

#include "api/agent_frames.h"
#include "platform/process.h"

namespace flotilla::agent {

// What is known when a runner has ended.
struct ExitFacts {
  platform::ExitStatus status;
  bool stop_asked = false;    // by the gateway or by our own end
  bool killed_by_us = false;  // its grace was over
  bool memory_kill = false;   // the kernel counted one
  bool was_ready = false;
  std::string failure = {};  // what the runner itself said before it ended
};

// Whose fault it was and why, in words. Fills everything but replica and log_tail.
api::ReplicaExited judge_exit(const ExitFacts& facts);

}  // namespace flotilla::agent
