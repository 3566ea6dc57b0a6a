#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "api/agent_frames.h"
#include "base/task.h"
#include "platform/process.h"

namespace flotilla::agent {

// A port of 127.0.0.1 that nothing listens at, and none of `given`: who has one of those may not
// listen yet. Until the engine does another program may take it.
Result<int> choose_port(Executor executor, const std::set<int>& given);
// Whether somebody does.
Awaitable<bool> is_listened_at(Executor executor, int port);
std::string address_of(int port);

// The command line of an engine that is not ours: our own program as its holder (`flotilla agent
// --hold-engine`), which ends it when we end, and the engine's words. `model` is the folder or file
// on this machine, or the name that the engine knows it by.
Result<platform::Command> engine_command(const std::filesystem::path& flotilla,
                                         const api::RunnerSpec& spec,
                                         const std::filesystem::path& model, int port);

}  // namespace flotilla::agent
