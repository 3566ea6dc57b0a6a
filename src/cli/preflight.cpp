#include "agent/preflight.h"

#include <array>
#include <csignal>
#include <filesystem>
#include <memory>
#include <poll.h>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "agent/runner_command.h"
#include "api/json_text.h"
#include "base/random.h"
#include "cli/commands.h"
#include "cli/server_access.h"
#include "cli/terminal.h"
#include "client/burst.h"
#include "platform/memory_info.h"
#include "platform/process.h"

namespace flotilla::cli {
namespace {

constexpr int kLoadLimitMs = 600'000;
constexpr int kPromptWords = 400;

struct PreflightFlags {
  ServerAccess access;
  std::string cluster;
  api::RunnerSpec spec;
  bool verify = false;
  bool json = false;
};

// Until the runner says that it is ready.
Result<void> wait_ready(platform::Process& runner) {
  std::string said;
  std::array<char, 4096> part;
  for (;;) {
    pollfd waits{.fd = runner.out.get(), .events = POLLIN, .revents = 0};
    if (::poll(&waits, 1, kLoadLimitMs) <= 0) {
      return fail(Code::DeadlineExceeded, "the runner did not become ready");
    }
    const ssize_t size = ::read(runner.out.get(), part.data(), part.size());
    if (size <= 0) return fail(Code::Unavailable, "the runner ended before it was ready");
    said.append(part.data(), static_cast<std::size_t>(size));
    for (std::size_t end = 0; (end = said.find('\n')) != std::string::npos;) {
      const auto line = api::parse_runner_line(said.substr(0, end));
      said.erase(0, end + 1);
      if (!line) return fail(line.error());
      if (const auto* failed = std::get_if<api::RunnerFailed>(&*line)) {
        return fail(Code::InvalidArgument, failed->error);
      }
      if (std::holds_alternative<api::RunnerInfo>(*line)) return {};
    }
  }
}

// Every slot answers, and one prompt is as long as the largest pass: then all buffers were used.
Task<void> use_all(Executor executor, http::Client& client, int width, int context) {
  const SystemClock clock;
  client::BurstOptions burst;
  burst.requests = width;
  burst.max_tokens = 4;
  burst.model = "preflight";
  const auto seen = co_await client::run_burst(executor, client, burst, clock);
  if (!seen) co_return fail(seen.error());
  client::ChatAsk ask;
  ask.model = burst.model;
  ask.max_tokens = 2;
  for (int i = 0; i < std::min(kPromptWords, context / 4); ++i) {
    ask.content += fmt::format("word {} ", i % 10);
  }
  http::Request request = client::chat_request(ask);
  client::StreamSeen answer;
  co_await client::read_answer(client, std::move(request), burst.limit, clock, answer);
  if (!answer.error.empty()) co_return fail(Code::Unavailable, answer.error);
  co_return Result<void>{};
}

// Starts a runner with these settings, uses it, and says how much memory it holds then, with the
// cells that it was given and nobody has filled.
Result<std::int64_t> measure(const api::RunnerSpec& spec, int context) {
  const std::string socket = "/tmp/flotilla-preflight-" + random_hex(6) + ".sock";
  api::RunnerSpec served = spec;
  served.alias = "preflight";
  auto command = agent::runner_command(platform::executable_path(), served, spec.model, socket);
  if (!command) return fail(command.error());
  command->err = platform::Stdio::Null;
  command->env.insert_or_assign("SESSION_STORE_BYTES", "0");  // it takes what is left
  auto runner = platform::Process::spawn(*command);
  if (!runner) return fail(runner.error());
  const auto ready = wait_ready(*runner);
  Result<std::int64_t> out = fail(Code::Internal, "not measured");
  if (!ready) {
    out = fail(ready.error());
  } else {
    boost::asio::io_context io;
    http::Client client(io.get_executor(),
                        http::Endpoint{.unix_path = socket, .address = {}, .base_path = {}});
    const auto used = wait_for<void>(io, use_all(io.get_executor(), client, spec.width, context));
    if (!used) {
      out = fail(used.error());
    } else if (const auto bytes = platform::resident_bytes(runner->pid())) {
      out = *bytes + platform::untouched_bytes(runner->pid());
    }
  }
  runner->signal(SIGKILL);
  runner->wait();
  std::error_code ignored;
  std::filesystem::remove(socket, ignored);
  return out;
}

void print_text(const api::PreflightAnswer& answer, std::int64_t used, double ratio) {
  fmt::print("{}\n", printable(answer.verdict));
  if (used == 0) return;
  fmt::print("expected {}, a runner uses {}: {:.1f} % off\n", bytes_text(answer.need_bytes),
             bytes_text(used), 100 * (ratio - 1));
}

void print_json(const api::PreflightAnswer& answer, std::int64_t used) {
  fmt::print(
      R"({{"weights_bytes":{},"kv_bytes":{},"buffer_bytes":{},"need_bytes":{},"free_bytes":{},)"
      R"("context":{},"fits":{},"used_bytes":{},"verdict":{}}})"
      "\n",
      answer.weights_bytes, answer.kv_bytes, answer.buffer_bytes, answer.need_bytes,
      answer.free_bytes, answer.context, answer.fits, used, api::json_string(answer.verdict));
}

int run_preflight(const PreflightFlags& flags) {
  const api::PreflightAnswer answer = agent::answer_preflight({.request = 0, .spec = flags.spec});
  std::int64_t used = 0;
  if (flags.verify && answer.need_bytes > 0) {
    const auto measured = measure(flags.spec, answer.context);
    if (!measured) return tell_error(measured.error());
    used = *measured;
  }
  const double ratio =
      used > 0 ? static_cast<double>(answer.need_bytes) / static_cast<double>(used) : 1;
  if (flags.json) {
    print_json(answer, used);
  } else {
    print_text(answer, used, ratio);
  }
  return answer.fits && ratio > 0.95 && ratio < 1.05 ? 0 : 1;
}

// What every node of a cluster says, before anything is loaded.
int ask_cluster(const PreflightFlags& flags) {
  auto admin = open_admin(flags.access);
  if (!admin) return tell_error(admin.error());
  const auto rows = wait_for<api::PreflightRows>(
      (*admin)->io(),
      (*admin)->client().preflight(flags.cluster, flags.spec.model, flags.spec.context));
  if (!rows) return tell_error(rows.error());
  std::vector<std::vector<std::string>> lines{{"NODE", "", "NEEDS", "FREE", "DISK", "FOUND"}};
  for (const api::PreflightRow& row : rows->nodes)
    lines.push_back({row.node, row.fits ? "fits" : "does not fit",
                     fmt::format("{} x {}", row.replicas_here, bytes_text(row.need_bytes)),
                     bytes_text(row.free_bytes), bytes_text(row.disk_free_bytes), row.verdict});
  fmt::print("{}", table(lines));
  if (!rows->limiting_node.empty()) fmt::print("{} limits\n", printable(rows->limiting_node));
  for (const api::PreflightRow& row : rows->nodes)
    if (!row.fix.empty()) fmt::print("{}: {}\n", printable(row.node), printable(row.fix));
  return rows->fits ? 0 : 1;
}

}  // namespace

void add_preflight_command(const App& app, CommandResult& result) {
  const auto command = app.add_subcommand(
      "preflight",
      "Says how much memory a model needs on this machine, from its file's header alone. With\n"
      "--verify a runner is loaded and used, and what it holds then is printed beside. Exit code "
      "1:\n"
      "it does not fit, or the two differ by more than 5 %. With --cluster every node of it is\n"
      "asked instead, as a load with --batch would, and what would do about each that says no is\n"
      "printed.\n\n"
      "Examples:\n"
      "  flotilla preflight SmolLM2-135M-Instruct.Q4_1.gguf --width 8 --context 2048 --verify\n"
      "  flotilla preflight SmolLM2-135M-Instruct.Q4_1.gguf --cluster lab");
  const auto flags = std::make_shared<PreflightFlags>();
  api::RunnerSpec& spec = flags->spec;
  spec.width = 8;
  command.add_option("model", spec.model, "GGUF file, or the first part of a split").required();
  command.add_option("--width", spec.width, "Requests that decode together")
      .between(1, 64)
      .show_default();
  command.add_option("--context", spec.context, "Most tokens of a request; 0 = the model's own")
      .not_negative();
  command.add_option("--window", spec.window, "KV cells in all; 0 = width x context")
      .not_negative();
  command.add_option("--threads", spec.threads, "Threads that compute; 0 = all usable cores")
      .between(0, 1024);
  command.add_option("--kv-type", spec.kv_type, "f16 or q8_0")
      .one_of({"f16", "q8_0"})
      .show_default();
  const auto verify =
      command.add_flag("--verify", flags->verify, "Load it, and print what a runner uses beside");
  const auto json = command.add_flag("--json", flags->json, "One line of JSON");
  command
      .add_option("--cluster", flags->cluster,
                  "Ask its nodes; the width is the server's RUNNER_BATCH_SIZE")
      .excludes(verify)
      .excludes(json);
  add_server_flags(command, flags->access);
  command.callback([flags, &result] {
    if (!flags->cluster.empty()) {
      result.exit_code = ask_cluster(*flags);
      return;
    }
    flags->spec.model = std::filesystem::absolute(flags->spec.model).string();
    result.exit_code = run_preflight(*flags);
  });
}

}  // namespace flotilla::cli
