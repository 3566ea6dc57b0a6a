#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/task.h"
#include "cli/commands.h"
#include "http/client.h"

// What the bench commands share.
namespace flotilla::cli {

void add_bench_burst(const App& bench, CommandResult& result);
void add_bench_stall(const App& bench, CommandResult& result);
void add_bench_soak(const App& bench, CommandResult& result);
void add_bench_engine(const App& bench, CommandResult& result);
void add_pool_benches(const App& bench, CommandResult& result);  // gateway, sessions

// A server that is measured.
struct Measured {
  std::string url;
  std::unique_ptr<http::Client> client;
  std::string model;
};

// SDKs are given URLs with /v1; the same one is understood here. `model` empty: the only ready one.
Task<Measured> reach_measured(Executor executor, std::string url, std::string model,
                              std::string key);

// Runs a measurement to its end. Exit code: 0 if all was well, 1 if not, or what tell_error() says.
int run_measurement(const std::function<Task<bool>(Executor)>& start);

}  // namespace flotilla::cli
