#include "cli/bench.h"

#include <memory>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/server_access.h"
#include "client/burst.h"
#include "client/burst_report.h"
#include "config/file.h"

namespace flotilla::cli {
namespace {

struct BurstFlags {
  std::string url;
  std::string compare;
  std::string prompt_file;
  client::BurstOptions options;
  int rounds = 3;
  bool json = false;
};

struct Side {
  Measured at;
  std::vector<client::BurstReport> reports;
};

Task<Side> reach(Executor executor, std::string url, client::BurstOptions options) {
  auto measured = co_await reach_measured(executor, std::move(url), options.model, options.key);
  if (!measured) co_return fail(measured.error());
  Side side;
  side.at = std::move(*measured);
  co_return side;
}

Task<void> measure(Executor executor, Side& side, client::BurstOptions options) {
  const SystemClock clock;
  options.model = side.at.model;
  const auto seen = co_await client::run_burst(executor, *side.at.client, options, clock);
  if (!seen)
    co_return fail(seen.error().code, fmt::format("{}: {}", side.at.url, seen.error().message));
  side.reports.push_back(client::report_of(*seen));
  co_return Result<void>{};
}

client::NamedReport named(const Side& side) {
  return {.url = side.at.url, .model = side.at.model, .report = client::median_of(side.reports)};
}

// true: every answer was whole.
Task<bool> run_one(Executor executor, BurstFlags flags) {
  auto side = co_await reach(executor, flags.url, flags.options);
  if (!side) co_return fail(side.error());
  const auto done = co_await measure(executor, *side, flags.options);
  if (!done) co_return fail(done.error());
  const client::NamedReport burst = named(*side);
  fmt::print("{}", flags.json ? client::burst_json(burst) + "\n" : client::burst_table(burst));
  co_return burst.report.all_well();
}

Task<bool> run_comparison(Executor executor, BurstFlags flags) {
  auto first = co_await reach(executor, flags.url, flags.options);
  if (!first) co_return fail(first.error());
  auto second = co_await reach(executor, flags.compare, flags.options);
  if (!second) co_return fail(second.error());
  for (int round = 0; round < flags.rounds; ++round) {
    // Who begins changes, so that a machine that warms up or slows down favours neither.
    Side* order[] = {&*first, &*second};
    if (round % 2 == 1) std::swap(order[0], order[1]);
    for (Side* side : order) {
      const auto done = co_await measure(executor, *side, flags.options);
      if (!done) co_return fail(done.error());
    }
  }
  const client::NamedReport a = named(*first);
  const client::NamedReport b = named(*second);
  fmt::print("{}", flags.json ? client::comparison_json(a, b, flags.rounds) + "\n"
                              : client::comparison_table(a, b, flags.rounds));
  co_return a.report.all_well() && b.report.all_well();
}

int run_burst_command(BurstFlags flags) {
  if (!flags.prompt_file.empty()) {
    auto prompt = config::read_file(flags.prompt_file);
    if (!prompt) return tell_error(prompt.error());
    flags.options.prompt = std::move(*prompt);
  }
  return run_measurement([&flags](Executor executor) {
    return flags.compare.empty() ? run_one(executor, flags) : run_comparison(executor, flags);
  });
}

}  // namespace

void add_bench_burst(const App& bench, CommandResult& result) {
  const auto burst = bench.add_subcommand(
      "burst",
      "Sends simultaneous chat requests of exactly the same length to any OpenAI-compatible\n"
      "server and prints what came back. Exit code 1 if an answer was not whole.\n\n"
      "Waves: ceil(requests / most answers that stream at one moment).\n\n"
      "Examples:\n"
      "  flotilla bench burst http://127.0.0.1:8000\n"
      "  flotilla bench burst http://127.0.0.1:8000 --requests 40 --json\n"
      "  flotilla bench burst http://127.0.0.1:8000 --compare http://127.0.0.1:8080 --rounds 5");
  auto flags = std::make_shared<BurstFlags>();
  burst.add_option("url", flags->url, "The server").required();
  burst.add_option("--requests", flags->options.requests, "Requests at once")
      .between(1, 10000)
      .show_default();
  burst.add_option("--max-tokens", flags->options.max_tokens, "Tokens of each answer, exactly")
      .between(1, 1000000)
      .show_default();
  burst.add_option("--prompt-file", flags->prompt_file,
                   "Text to ask after each request's number (default: to write a long story)");
  burst.add_option("--model", flags->options.model, "Alias to ask (default: the only ready model)");
  burst.add_option("--compare", flags->compare,
                   "A second server, measured in turns with the first");
  burst.add_option("--rounds", flags->rounds, "Bursts at each server with --compare")
      .between(1, 1000)
      .show_default();
  burst.add_option("--key", flags->options.key, "API key").environment("FLOTILLA_API_KEY");
  burst.add_flag("--json", flags->json, "One line of JSON");
  burst.callback([flags, &result] { result.exit_code = run_burst_command(*flags); });
}

void add_bench_command(const App& app, CommandResult& result) {
  const auto bench = app.add_subcommand("bench", "Measures a running server");
  bench.require_subcommand();
  add_bench_burst(bench, result);
  add_bench_stall(bench, result);
  add_bench_soak(bench, result);
  add_bench_engine(bench, result);
  add_pool_benches(bench, result);
}

}  // namespace flotilla::cli
