#include "runner/runner.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "api/runner_protocol.h"
#include "base/log_line.h"
#include "cli/commands.h"
#include "model/alias.h"
#include "platform/cpu_info.h"

namespace flotilla::cli {
namespace {

struct RunnerFlags {
  runner::RunnerOptions options;
  std::string model;
  std::string kv_type = "f16";
  std::string kernels = "flotilla";
  std::string log_level = "info";
  std::string log_format = "text";
  int threads = 0;
  int port = -1;
  // Knobs, by the environment.
  int prefill_batch = 4;
  double step_target_ms = 0;
  int trim_every = 512;
  std::int64_t store_bytes = -1;
  std::int64_t disk_bytes = 0;
  int synthetic_step_us = 0;
  int synthetic_token_us = 0;
  int synthetic_canned = 0;
  std::string synthetic_crash;
};

void add_flags(const App& command, RunnerFlags& flags) {
  runner::RunnerOptions& options = flags.options;
  engine::LoadOptions& load = options.load;
  const auto model =
      command.add_option("--model", flags.model, "GGUF file, or the first part of a split");
  const auto synthetic =
      command.add_flag("--synthetic", options.synthetic,
                       "Serve a made-up model that needs no file (tests, dry runs)");
  model.excludes(synthetic);
  const auto unix_path =
      command.add_option("--unix", options.unix_path, "Unix socket to listen on");
  command.add_option("--port", flags.port, "TCP port to listen on; 0 takes a free one")
      .between(0, 65535)
      .excludes(unix_path);
  command.add_option("--host", options.host, "Address to listen on")
      .excludes(unix_path)
      .show_default();
  command.add_option("--width", load.width, "Requests that decode together; 1 = one at a time")
      .between(1, 64)
      .show_default();
  command.add_option("--context", load.context, "Most tokens of a request; 0 = the model's own")
      .not_negative();
  command.add_option("--window", load.window, "KV cells in all; 0 = width x context")
      .not_negative();
  command
      .add_option("--memory-limit", options.memory_limit,
                  "Bytes for all of it: weights, KV cells, buffers, kept conversations (4GiB is "
                  "understood); default: what the machine has")
      .bytes();
  command.add_option("--threads", flags.threads, "Threads that compute; 0 = all usable cores")
      .between(0, 1024);
  command
      .add_option("--kv-type", flags.kv_type,
                  "Type of the KV cells: f16, or q8_0 at half the memory")
      .one_of({"f16", "q8_0"})
      .show_default();
  command
      .add_option("--kernels", flags.kernels, "On the CPU: flotilla, or llama.cpp's own with stock")
      .one_of({"flotilla", "stock"})
      .show_default();
  command.add_option("--gpu-layers", load.gpu_layers, "Layers on the GPU, where there is one")
      .not_negative();
  command
      .add_option("--speculate", options.speculate,
                  "ngram: several tokens a pass where text repeats itself, with the same answers; "
                  "auto: the same")
      .one_of({"off", "ngram", "auto"})
      .show_default();
  command.add_option("--chat-template", load.chat_template,
                     "Jinja text instead of the model's own");
  command
      .add_option("--breadcrumb", options.breadcrumb_path,
                  "File that tells which requests were being computed if it dies")
      .hidden();
  command.add_option("--cells-dir", options.cells_dir,
                     "Folder for conversations that memory has no room for, up to "
                     "SESSION_STORE_DISK_BYTES");
  command.add_option("--alias", options.service.alias, "The model name that clients send");
  command.add_option("--node", options.service.node, "The node's name, for x_flotilla");
  command.add_flag("--supervised", options.supervised,
                   "Started by an agent: stdin is the life line, stdout tells of the load");
  command.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      .one_of({"debug", "info", "warning", "error"})
      .show_default();
  command.add_option("--log-format", flags.log_format, "text, or json: one object a line")
      .environment("FLOTILLA_LOG_FORMAT")
      .one_of({"text", "json"})
      .show_default();
}

void add_knobs(const App& command, RunnerFlags& flags) {
  command.add_knob("RUNNER_PREFILL_BATCH", flags.prefill_batch, 1, 64);
  command.add_knob("RUNNER_STEP_TARGET_MS", flags.step_target_ms, 0.0, 60'000.0);
  command.add_knob("BG_CLEAR_CACHE_EVERY", flags.trim_every, 0, 1'000'000'000);
  command.add_knob("SESSION_STORE_BYTES", flags.store_bytes, -1.0, 1e15);
  command.add_knob("SESSION_STORE_DISK_BYTES", flags.disk_bytes, 0.0, 1e15);
  command.add_knob("FLOTILLA_SYNTHETIC_STEP_US", flags.synthetic_step_us, 0, 60'000'000);
  command.add_knob("FLOTILLA_SYNTHETIC_TOKEN_US", flags.synthetic_token_us, 0, 60'000'000);
  command.add_knob("FLOTILLA_SYNTHETIC_CANNED", flags.synthetic_canned, 0, 1'000'000);
  command.add_option("--synthetic-crash", flags.synthetic_crash)
      .environment("FLOTILLA_SYNTHETIC_CRASH")
      .hidden();
}

void show_loading(std::int64_t loaded, std::int64_t total) {
  const double mib = 1 << 20;
  const double percent =
      total > 0 ? 100.0 * static_cast<double>(loaded) / static_cast<double>(total) : 0;
  std::fputs(fmt::format("\rloading {:3.0f} %  {:.1f} of {:.1f} MiB{}", percent,
                         static_cast<double>(loaded) / mib, static_cast<double>(total) / mib,
                         loaded == total ? "\n" : "")
                 .c_str(),
             stderr);
}

int run_runner(RunnerFlags& flags) {
  runner::RunnerOptions& options = flags.options;
  if (flags.model.empty() && !options.synthetic) {
    std::fputs("flotilla runner: --model FILE is missing (or --synthetic)\n", stderr);
    return 2;
  }
  if (options.unix_path.empty() && flags.port < 0) {
    std::fputs("flotilla runner: say where to listen: --port N or --unix PATH\n", stderr);
    return 2;
  }
  if (platform::x86_level() < FLOTILLA_X86_LEVEL) {
    const std::string reason = fmt::format(
        "this flotilla is built for x86-64-v{} and this machine's processor is x86-64-v{}; build "
        "flotilla on this machine (README)",
        FLOTILLA_X86_LEVEL, platform::x86_level());
    if (options.supervised) std::fputs(api::runner_line(api::RunnerFailed{reason}).c_str(), stdout);
    fmt::print(stderr, "flotilla runner: {}\n", reason);
    return 1;
  }
  log::start("runner", log::parse_level(flags.log_level));
  log::set_form(log::parse_form(flags.log_format));
  options.port = static_cast<std::uint16_t>(std::max(flags.port, 0));
  options.load.model = flags.model;
  options.service.version = FLOTILLA_VERSION;
  options.load.threads = flags.threads > 0 ? flags.threads : platform::usable_cores();
  options.load.kv_type = flags.kv_type == "q8_0" ? engine::KvType::Q8_0 : engine::KvType::F16;
  options.load.kernels =
      flags.kernels == "stock" ? engine::Kernels::Stock : engine::Kernels::Flotilla;
  options.fake.width = options.load.width;
  if (options.load.context > 0) options.fake.context = options.load.context;
  options.fake.per_step = std::chrono::microseconds(flags.synthetic_step_us);
  if (options.synthetic) options.service.canned_chunks = flags.synthetic_canned;
  options.fake.crash_on = flags.synthetic_crash;
  options.fake.per_token = std::chrono::microseconds(flags.synthetic_token_us);
  if (options.service.alias.empty()) {
    options.service.alias = options.synthetic ? "synthetic" : model::default_alias(flags.model);
  }
  options.service.scheduler.limits.prefill_batch = flags.prefill_batch;
  options.service.scheduler.limits.step_target = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::milli>(flags.step_target_ms));
  options.service.scheduler.trim_every = flags.trim_every;
  if (flags.store_bytes >= 0) options.store_bytes = flags.store_bytes;
  options.disk_bytes = flags.disk_bytes;
  if (::isatty(STDERR_FILENO) != 0) options.on_loading = show_loading;
  return runner::run(options);
}

}  // namespace

void add_runner_command(const App& app, CommandResult& result) {
  const auto command = app.add_subcommand("runner", "Serves one model from this process alone");
  command.footer(
      "Examples:\n"
      "  flotilla runner --model SmolLM2-135M-Instruct.Q4_1.gguf --port 8081 --width 8\n"
      "  flotilla runner --synthetic --unix /run/user/1000/model.sock\n"
      "Environment: RUNNER_PREFILL_BATCH (4), RUNNER_STEP_TARGET_MS (0 = auto), "
      "BG_CLEAR_CACHE_EVERY "
      "(512), SESSION_STORE_BYTES (-1 = a quarter of what is free after the load), "
      "SESSION_STORE_DISK_BYTES (0)");
  const auto flags = std::make_shared<RunnerFlags>();
  add_flags(command, *flags);
  add_knobs(command, *flags);
  command.callback([flags, &result] { result.exit_code = run_runner(*flags); });
}

}  // namespace flotilla::cli
