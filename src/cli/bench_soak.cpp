#include <memory>
#include <vector>

#include <fmt/format.h>

#include "cli/bench.h"
#include "client/soak.h"
#include "platform/memory_info.h"

namespace flotilla::cli {
namespace {

struct SoakFlags {
  std::string url;
  client::SoakOptions options;
  std::vector<int> pids;
  double growth_max = 0.02;
  double slowdown_max = 1.15;
  bool json = false;
};

// true: every answer was whole, nothing grew and nothing slowed down.
Task<bool> run_soak(Executor executor, SoakFlags flags) {
  auto at = co_await reach_measured(executor, flags.url, flags.options.model, flags.options.key);
  if (!at) co_return fail(at.error());
  client::SoakOptions options = flags.options;
  options.model = at->model;
  client::ReadResident resident;
  if (!flags.pids.empty()) {
    resident = [pids = flags.pids] {
      std::int64_t bytes = 0;
      for (const int pid : pids) bytes += platform::resident_bytes(pid).value_or(0);
      return bytes;
    };
  }
  const SystemClock clock;
  const auto seen = co_await client::run_soak(executor, *at->client, options, resident, clock);
  if (!seen) co_return fail(seen.error());
  const client::SoakReport report = client::report_of(*seen);
  fmt::print("{}", flags.json ? client::soak_json(at->url, at->model, report) + "\n"
                              : client::soak_table(at->url, at->model, report));
  co_return report.failed == 0 &&
      report.resident_growth() <= flags.growth_max&& report.slowdown() <= flags.slowdown_max;
}

int run_soak_command(const SoakFlags& flags) {
  return run_measurement([&flags](Executor executor) { return run_soak(executor, flags); });
}

}  // namespace

void add_bench_soak(const App& bench, CommandResult& result) {
  const auto soak = bench.add_subcommand(
      "soak",
      "Runs many short generations on any OpenAI-compatible server and prints whether it slowed\n"
      "down or grew: a generation's time at first, at the 500th and at last, and the mean memory "
      "of\n"
      "the first and the last quarter. Exit code 1 if it did, or if an answer was not whole.\n\n"
      "Example:\n"
      "  flotilla bench soak http://127.0.0.1:8081 --pid $(pgrep -f 'flotilla runner')");
  auto flags = std::make_shared<SoakFlags>();
  client::SoakOptions& options = flags->options;
  soak.add_option("url", flags->url, "The server").required();
  soak.add_option("--generations", options.generations, "How many in all")
      .between(1, 100'000'000)
      .show_default();
  soak.add_option("--parallel", options.parallel, "How many at once")
      .between(1, 1000)
      .show_default();
  soak.add_option("--max-tokens", options.max_tokens, "Tokens of each answer, exactly")
      .between(1, 1'000'000)
      .show_default();
  soak.add_option("--pid", flags->pids, "Processes on this machine whose memory is watched");
  soak.add_option("--growth-max", flags->growth_max, "Share of memory that may be added")
      .show_default();
  soak.add_option("--slowdown-max", flags->slowdown_max, "Generation 500 / the first ones")
      .show_default();
  soak.add_option("--model", options.model, "Alias to ask (default: the only ready model)");
  soak.add_option("--key", options.key, "API key").environment("FLOTILLA_API_KEY");
  soak.add_flag("--json", flags->json, "One line of JSON");
  soak.callback([flags, &result] { result.exit_code = run_soak_command(*flags); });
}

}  // namespace flotilla::cli
