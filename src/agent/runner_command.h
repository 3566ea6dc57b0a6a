#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "api/agent_frames.h"
#include "base/result.h"
#include "platform/process.h"

namespace flotilla::agent {

// The command line of a supervised runner. `model` is the file found on this machine, `cells_dir`
// where conversations may lie for which it has no memory; empty: nowhere.
// InvalidArgument names a value or an environment name that a runner must not get: what loads other
// code (LD_…, DYLD_…, PATH) is never passed on.
Result<platform::Command> runner_command(const std::filesystem::path& program,
                                         const api::RunnerSpec& spec,
                                         const std::filesystem::path& model,
                                         const std::string& socket,
                                         const std::filesystem::path& cells_dir = {});

// The program for runners on a processor of this level (platform/cpu_info.h): of a package's, the
// one that is built for the highest that it reaches, ../lib/flotilla/flotilla-x86-64-vN beside
// ours; else `ours`. Of the engine only: our own kernels are chosen as they run.
std::filesystem::path runner_program(const std::filesystem::path& ours, int x86_level);

// Where devices are named they are nvidia-smi's numbers, by which preflight knows their memory:
// CUDA's own order is by speed.
void order_devices(std::map<std::string, std::string>& env);

// Where a runner with that socket leaves its breadcrumb.
std::string breadcrumb_of(const std::string& socket);

}  // namespace flotilla::agent
