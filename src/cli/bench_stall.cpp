#include <memory>

#include <fmt/format.h>

#include "base/random.h"
#include "cli/bench.h"
#include "client/stall.h"
#include "client/stall_report.h"

namespace flotilla::cli {
namespace {

struct StallFlags {
  std::string url;
  client::StallOptions options;
  client::StallLimits limits;
  double engine_alone_ms = 0;
  bool json = false;
};

// true: every answer came, and no limit was exceeded.
Task<bool> run_stall(Executor executor, StallFlags flags) {
  auto at = co_await reach_measured(executor, flags.url, flags.options.model, flags.options.key);
  if (!at) co_return fail(at.error());
  client::StallOptions options = flags.options;
  options.model = at->model;
  options.run = random_seed() % 1'000'000;
  const SystemClock clock;
  const auto seen = co_await client::run_stall(executor, *at->client, options, clock);
  if (!seen)
    co_return fail(seen.error().code, fmt::format("{}: {}", at->url, seen.error().message));
  const client::StallReport report = client::report_of(*seen, flags.engine_alone_ms);
  const auto checks = client::checks_of(report, flags.limits);
  fmt::print("{}", flags.json ? client::stall_json(at->url, at->model, report, checks) + "\n"
                              : client::stall_table(at->url, at->model, report, checks));
  bool well = report.error.empty();
  for (const client::StallCheck& check : checks) well = well && check.holds();
  co_return well;
}

int run_stall_command(const StallFlags& flags) {
  return run_measurement([&flags](Executor executor) { return run_stall(executor, flags); });
}

}  // namespace

void add_bench_stall(const App& bench, CommandResult& result) {
  const auto stall = bench.add_subcommand(
      "stall",
      "Lets a few streams run on any OpenAI-compatible server, sends a long prompt and then small\n"
      "requests, and prints who had to wait. Exit code 1 if a limit was exceeded or an answer\n"
      "failed.\n\n"
      "Limits: a stream's gap between tokens p99 3 x (or 60 ms) and max 4 x (or 100 ms) the "
      "median\n"
      "before the prompt came, a small request's first token 1 s, the long prompt's 2 x what it\n"
      "takes when it is alone.\n\n"
      "Examples:\n"
      "  flotilla bench stall http://127.0.0.1:8000\n"
      "  flotilla bench stall http://127.0.0.1:8000 --prompt-tokens 3000 --json");
  auto flags = std::make_shared<StallFlags>();
  client::StallOptions& options = flags->options;
  stall.add_option("url", flags->url, "The server").required();
  stall.add_option("--streams", options.streams, "Streams that decode")
      .between(1, 1000)
      .show_default();
  stall.add_option("--prompt-tokens", options.prompt_tokens, "Tokens of the long prompt, about")
      .between(100, 10'000'000)
      .show_default();
  stall.add_option("--small", options.small_requests, "Small requests that come meanwhile")
      .between(0, 1000)
      .show_default();
  stall.add_option("--model", options.model, "Alias to ask (default: the only ready model)");
  stall
      .add_option("--prompt-factor", flags->limits.prompt_factor,
                  "Limit of the long prompt's first token / alone")
      .show_default();
  stall.add_option("--engine-alone-ms", flags->engine_alone_ms,
                   "What the engine needs for the prompt without a server (bench engine tells)");
  stall.add_option("--key", options.key, "API key").environment("FLOTILLA_API_KEY");
  stall.add_flag("--json", flags->json, "One line of JSON");
  stall.callback([flags, &result] { result.exit_code = run_stall_command(*flags); });
}

}  // namespace flotilla::cli
