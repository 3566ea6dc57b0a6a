#include "client/conform.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "cli/bench.h"
#include "cli/terminal.h"

namespace flotilla::cli {
namespace {

struct ConformFlags {
  std::string url;
  client::ConformOptions options;
  bool failed_only = false;
  bool json = false;
};

// The row of a case, as it ends: some take seconds.
void print_case(const client::CaseSeen& seen, std::size_t width, bool failed_only) {
  if (failed_only && seen.breach.empty()) return;
  const std::string line = seen.breach.empty()
                               ? fmt::format("{:<{}}  held", seen.id, width)
                               : fmt::format("{:<{}}  failed  {}", seen.id, width, seen.breach);
  fmt::print("{}\n", printable(line));
  std::fflush(stdout);
}

// true: all held.
Task<bool> run_conform(Executor executor, ConformFlags flags) {
  const std::vector<std::string> ids = client::conform_ids(flags.options.only);
  if (ids.empty()) {
    co_return fail(Code::NotFound,
                   fmt::format("--only: no case's id contains \"{}\"", flags.options.only));
  }
  auto at = co_await reach_measured(executor, flags.url, flags.options.server.model,
                                    flags.options.server.key);
  if (!at) co_return fail(at.error());
  client::ConformOptions options = flags.options;
  options.server.model = at->model;
  const std::size_t width = std::ranges::max(ids, {}, &std::string::size).size();
  std::function<void(const client::CaseSeen&)> tell;
  if (!flags.json) {
    tell = [width, &flags](const client::CaseSeen& seen) {
      print_case(seen, width, flags.failed_only);
    };
  }
  const SystemClock clock;
  const auto cases = co_await client::run_conform(executor, *at->client, options, tell, clock);
  if (!cases) co_return fail(cases.error());
  if (flags.json) {
    fmt::print("{}\n", client::conform_json(at->url, at->model, *cases));
  } else {
    fmt::print("\n{} at {}\n{}", printable(at->model), at->url, client::score_lines(*cases));
  }
  co_return std::ranges::all_of(*cases, [](const auto& one) { return one.breach.empty(); });
}

}  // namespace

void add_conform_command(const App& app, CommandResult& result) {
  const auto command = app.add_subcommand(
      "conform",
      "Asks any OpenAI-compatible server what clients rely on and prints what held, what did not\n"
      "and why, with a score for each API: refusals and their form, streams, stop strings, seeds\n"
      "beside other users, whole characters, usage, schemas, tools, clients that go away. The\n"
      "server should have nothing else to do. Exit code 1 if something did not hold.\n\n"
      "Examples:\n"
      "  flotilla conform http://127.0.0.1:8000\n"
      "  flotilla conform http://127.0.0.1:8080/v1 --failed\n"
      "  flotilla conform http://127.0.0.1:8000 --only seed --json");
  auto flags = std::make_shared<ConformFlags>();
  client::ConformOptions& options = flags->options;
  command.add_option("url", flags->url, "The server").required();
  command.add_option("--only", options.only, "Cases whose id contains this");
  command.add_option("--model", options.server.model,
                     "Alias to ask (default: the only ready model)");
  command.add_option("--key", options.server.key, "API key").environment("FLOTILLA_API_KEY");
  command.add_flag("--failed", flags->failed_only, "Only the cases that did not hold");
  command.add_flag("--json", flags->json, "One line of JSON, with all cases");
  command.callback([flags, &result] {
    result.exit_code =
        run_measurement([&flags](Executor executor) { return run_conform(executor, *flags); });
  });
}

}  // namespace flotilla::cli
