#pragma once

#include "cli/flags.h"

// Each command is one file: it declares its flags on the App and, when it was chosen, runs in
// its callback and leaves its exit code here. 0 = done, 1 = failed (said on stderr), 2 = wrong
// usage.
namespace flotilla::cli {

struct CommandResult {
  int exit_code = 0;
};

void add_serve_command(const App& app, CommandResult& result);
void add_config_command(const App& app, CommandResult& result);
void add_runner_command(const App& app, CommandResult& result);
void add_agent_command(const App& app, CommandResult& result);
void add_cluster_command(const App& app, CommandResult& result);
void add_doctor_command(const App& app, CommandResult& result);
void add_model_command(const App& app, CommandResult& result);
void add_node_command(const App& app, CommandResult& result);
void add_load_commands(const App& app, CommandResult& result);  // load, unload
void add_reload_command(const App& app, CommandResult& result);
void add_replica_command(const App& app, CommandResult& result);
void add_apply_commands(const App& app, CommandResult& result);  // apply, export
void add_keys_command(const App& app, CommandResult& result);
void add_usage_command(const App& app, CommandResult& result);
void add_request_command(const App& app, CommandResult& result);
void add_status_command(const App& app, CommandResult& result);
void add_preflight_command(const App& app, CommandResult& result);
void add_bench_command(const App& app, CommandResult& result);
void add_conform_command(const App& app, CommandResult& result);

}  // namespace flotilla::cli
