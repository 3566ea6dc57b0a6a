#include "agent/exit_reason.h"

#include <csignal>

#include <fmt/format.h>

namespace flotilla::agent {
namespace {

bool is_crash(int signal) {
  return signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS || signal == SIGFPE ||
         signal == SIGILL;
}

}  // namespace

api::ReplicaExited judge_exit(const ExitFacts& facts) {
  api::ReplicaExited out;
  out.exit_code = facts.status.exit_code;
  out.signal = facts.status.signal;
  out.was_ready = facts.was_ready;
  const std::string how = platform::describe(facts.status);
  if (facts.stop_asked) {
    out.reason = facts.killed_by_us ? "stopped; it had to be killed" : "stopped";
  } else if (facts.memory_kill) {
    out.own_fault = true;
    out.reason = "killed by the system because memory ran out";
  } else if (out.signal) {
    out.own_fault = is_crash(*out.signal);
    out.reason = (out.own_fault ? "crashed: " : "killed: ") + how;
  } else if (out.exit_code.value_or(-1) != 0) {
    out.own_fault = true;
    out.reason = facts.failure.empty() ? "failed: " + how : facts.failure;
  } else {
    out.reason = "ended by itself";
  }
  return out;
}

}  // namespace flotilla::agent
