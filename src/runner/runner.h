#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "engine/fake_engine.h"
#include "runner/service.h"

namespace flotilla::runner {

struct RunnerOptions {
  engine::LoadOptions load;
  bool synthetic = false;  // the fake engine instead of load.model
  engine::FakeOptions fake;
  std::string unix_path;        // set: host and port are ignored
  std::string breadcrumb_path;  // what it works on, for whoever looks after its death; empty: none
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0 takes a free one
  // stdin is the life line (its end ends the runner at once), stdout carries JSON lines.
  bool supervised = false;
  Duration drain = std::chrono::seconds(120);  // after SIGTERM or SIGINT
  std::string speculate = "off";               // ngram or auto: where drafts change no answer
  ServiceOptions service;  // scheduler.limits: prefill_batch and step_target only
  // For cells of conversations that do not compute; none = a quarter of what is free after the
  // load.
  std::optional<std::int64_t> store_bytes = {};
  // For what memory has no room for: files in `cells_dir`; no folder or 0 bytes = none.
  std::string cells_dir = {};
  std::int64_t disk_bytes = 0;
  // Of the whole process: weights, KV cells, buffers and the conversations that it keeps. None = as
  // much as the machine has.
  std::optional<std::int64_t> memory_limit = {};
  // Unsupervised: told of the load and of where it listens.
  std::function<void(std::int64_t loaded_bytes, std::int64_t total_bytes)> on_loading;
  std::function<void(const std::string& address)> on_ready;
};

// `flotilla runner`: loads, serves until a signal, drains. The exit code; what went wrong is on
// stderr, and on stdout as the line "failed" when supervised. One a process: it owns the signals.
int run(const RunnerOptions& options);

}  // namespace flotilla::runner
