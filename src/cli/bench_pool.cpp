#include <memory>

#include <fmt/format.h>

#include "base/random.h"
#include "cli/bench.h"
#include "client/burst.h"
#include "client/conversations.h"
#include "client/stream_rate.h"

// What a pool as a whole is measured with: its relay, and its conversations.
namespace flotilla::cli {
namespace {

struct RateFlags {
  std::vector<std::string> urls;
  client::RateOptions options;
  double seconds = 5;
  int rounds = 3;
  bool json = false;
};

struct ConversationFlags {
  std::string url;
  client::ConversationOptions options;
  bool json = false;
};

// true: every stream was whole.
Task<bool> run_rates(Executor executor, RateFlags flags) {
  const SystemClock clock;
  std::vector<client::NamedRates> servers;
  for (const std::string& url : flags.urls) servers.push_back({.url = url, .rounds = {}});
  bool well = true;
  for (int round = 0; round < flags.rounds; ++round) {
    for (std::size_t i = 0; i < servers.size(); ++i) {
      // Who begins changes, so that a machine that warms up or slows down favours neither.
      client::NamedRates& server = servers[(i + static_cast<std::size_t>(round)) % servers.size()];
      client::RateOptions options = flags.options;
      const auto at = co_await reach_measured(executor, server.url, options.model, options.key);
      if (!at) co_return fail(at.error());
      options.model = at->model;
      auto seen = co_await client::run_rate(executor, *at->client, std::move(options), clock);
      if (!seen)
        co_return fail(seen.error().code, fmt::format("{}: {}", server.url, seen.error().message));
      if (seen->failed > 0) fmt::print(stderr, "{}: {}\n", server.url, seen->first_error);
      well = well && seen->failed == 0;
      server.rounds.push_back(std::move(*seen));
    }
  }
  fmt::print("{}", flags.json ? client::rate_json(servers) + "\n" : client::rate_table(servers));
  co_return well;
}

Task<bool> run_conversations(Executor executor, ConversationFlags flags) {
  const auto at =
      co_await reach_measured(executor, flags.url, flags.options.model, flags.options.key);
  if (!at) co_return fail(at.error());
  flags.options.model = at->model;
  const SystemClock clock;
  const auto seen = co_await client::run_conversations(executor, *at->client, flags.options, clock);
  if (!seen) co_return fail(seen.error());
  const client::ConversationReport report = client::report_of(*seen);
  fmt::print("{}", flags.json ? client::conversation_json(report) + "\n"
                              : client::conversation_table(report));
  co_return report.failed == 0;
}

void add_rate(const App& bench, CommandResult& result) {
  auto flags = std::make_shared<RateFlags>();
  const auto command = bench.add_subcommand(
      "gateway",
      "Asks for streams back to back and prints how many chunks a second came through; a second\n"
      "server is measured in turns with the first.\n\n"
      "A server that relays and computes nothing: FLOTILLA_SYNTHETIC_CANNED=100 flotilla serve,\n"
      "then load the model \"synthetic\" on four nodes.\n\n"
      "Example:\n"
      "  flotilla bench gateway http://127.0.0.1:8000 http://127.0.0.1:8080 --model synthetic");
  command.add_option("urls", flags->urls, "One server or two").required().values(1, 2);
  command.add_option("--connections", flags->options.connections, "Streams at once")
      .between(1, 10000)
      .show_default();
  command.add_option("--seconds", flags->seconds, "Of each round")
      .between(0.1, 3600.0)
      .show_default();
  command.add_option("--rounds", flags->rounds, "At each server").between(1, 1000).show_default();
  command.add_option("--model", flags->options.model, "Alias (default: the only ready model)");
  command.add_option("--key", flags->options.key, "API key").environment("FLOTILLA_API_KEY");
  command.add_flag("--json", flags->json, "One line of JSON");
  command.callback([flags, &result] {
    flags->options.length =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(flags->seconds));
    result.exit_code =
        run_measurement([&flags](Executor executor) { return run_rates(executor, *flags); });
  });
}

void add_sessions(const App& bench, CommandResult& result) {
  auto flags = std::make_shared<ConversationFlags>();
  const auto command = bench.add_subcommand(
      "sessions",
      "Holds many conversations at once and prints how many turns went to the replica that has\n"
      "their past, how even the work is, and times to the first token.\n\n"
      "Example:\n"
      "  flotilla bench sessions http://127.0.0.1:8000 --conversations 40 --turns 5");
  command.add_option("url", flags->url, "The server").required();
  command.add_option("--conversations", flags->options.conversations, "At once")
      .between(1, 10000)
      .show_default();
  command.add_option("--turns", flags->options.turns, "Of each").between(1, 1000).show_default();
  command.add_option("--answer-tokens", flags->options.answer_tokens, "Of each turn's answer")
      .between(1, 100000)
      .show_default();
  command
      .add_option("--first-turn-tokens", flags->options.first_tokens,
                  "Of each first turn, about (default: drawn as the others, 32 to 1,024)")
      .between(1, 10'000'000);
  flags->options.seed = 0;
  command.add_option("--seed", flags->options.seed,
                     "Of the turns' lengths and words (default: by chance, so that no cache knows "
                     "them)");
  command.add_option("--model", flags->options.model, "Alias (default: the only ready model)");
  command.add_option("--key", flags->options.key, "API key").environment("FLOTILLA_API_KEY");
  command.add_flag("--json", flags->json, "One line of JSON");
  command.callback([flags, &result] {
    if (flags->options.seed == 0) flags->options.seed = random_seed() % 1'000'000;
    result.exit_code = run_measurement(
        [&flags](Executor executor) { return run_conversations(executor, *flags); });
  });
}

}  // namespace

void add_pool_benches(const App& bench, CommandResult& result) {
  add_rate(bench, result);
  add_sessions(bench, result);
}

}  // namespace flotilla::cli
