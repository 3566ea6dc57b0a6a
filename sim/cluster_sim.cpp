// cluster_sim: histories of a pool in virtual time, from seeds.
//   cluster_sim --runs 200                     random scenarios, up to --nodes and --hours each
//   cluster_sim --seed 17 --trace              one history, its last events printed
#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "base/numbers.h"
#include "sim/faults.h"
#include "sim/workload.h"
#include "sim/world.h"

namespace flotilla::sim {
namespace {

struct Totals {
  double hours = 0;
  std::uint64_t events = 0;
  std::uint64_t requests = 0;
};

// nullopt: every promise held.
std::optional<std::string> play(const Scenario& scenario, Totals& totals) {
  Random random(scenario.seed ^ 0x51A7);
  Agenda agenda;
  World world(scenario, agenda, random);
  Workload workload(scenario, world, agenda, random);
  Faults faults(scenario, world, agenda, random);
  const Instant begin = agenda.now();
  const Instant storm_over = begin + scenario.length;
  // The slowest way back: a stalled load is given up after 15 minutes, then a full backoff.
  const Instant all_over = storm_over + std::chrono::minutes(60);

  Instant due = begin;
  Agenda::Deed look = [&] {
    world.view(agenda.now() > due);
    due = agenda.now() + std::chrono::seconds(1);
    agenda.at(due, look);
  };
  look();
  while (!world.checkers().broken() && agenda.step(storm_over)) {
  }
  workload.stop();
  faults.stop();
  world.calm();
  while (!world.checkers().broken() && agenda.step(all_over)) {
    const cluster::Pool& pool = world.pool();
    if (agenda.done() % 1024 != 0 || world.checkers().open_tickets() > 0) continue;
    const cluster::PoolStatus status = pool.snapshot(agenda.now());
    if (status.replicas_live == status.replicas_total) break;
  }
  if (!world.checkers().broken()) {
    world.checkers().on_end(world.pool().snapshot(agenda.now()), agenda.now());
  }
  totals.hours += to_s(agenda.now() - begin) / 3600;
  totals.events += agenda.done();
  totals.requests += world.checkers().accepted();
  if (scenario.trace) {
    for (const std::string& line : world.trace()) fmt::print("{}\n", line);
  }
  return world.checkers().broken();
}

struct Options {
  std::uint64_t seed = 1;
  int runs = 1;
  int nodes = 16;
  double hours = 4;
  double quiet = 0;      // share of histories with few requests
  int sessions = 0;      // not 0: conversations
  bool exactly = false;  // --nodes is the number, not the most
  bool trace = false;
};

int run(const Options& options) {
  Totals totals;
  const auto length =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.hours * 3600));
  for (int i = 0; i < options.runs; ++i) {
    const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(i);
    Scenario scenario = make_scenario(seed, options.nodes, length, options.quiet);
    if (options.exactly) scenario.nodes = options.nodes;
    if (options.sessions > 0) scenario.sessions = options.sessions;
    scenario.trace = options.trace;
    const std::optional<std::string> broken = play(scenario, totals);
    if (!broken) continue;
    scenario.trace = true;
    Totals again;
    if (!options.trace) (void)play(scenario, again);
    fmt::print(
        "\nBROKEN: {}\nseed {}: {}\nreplay: cluster_sim --seed {} --nodes {} --hours {}{} "
        "--trace\n",
        *broken, seed, describe(scenario), seed, options.nodes, options.hours,
        options.exactly ? " --exactly" : "");
    return 1;
  }
  fmt::print(
      "{} runs, {:.0f} simulated hours, {} requests, {} events: every promise held (seeds {}-{})\n",
      options.runs, totals.hours, totals.requests, totals.events, options.seed,
      options.seed + static_cast<std::uint64_t>(options.runs) - 1);
  return 0;
}

// What the program was called with; nullopt: said why not.
template <class Number>
bool read(std::string_view text, Number& out) {
  if constexpr (std::is_floating_point_v<Number>) {
    const auto number = parse_double(text);
    out = number.value_or(-1);
    return out >= 0;
  } else {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc{} && end == text.data() + text.size() && out >= Number{};
  }
}

std::optional<Options> parse(int argc, char** argv) {
  Options out;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const std::string_view value = i + 1 < argc ? argv[i + 1] : "";
    bool good = true;
    if (name == "--trace") {
      out.trace = true;
    } else if (name == "--exactly") {
      out.exactly = true;
    } else {
      ++i;
      good = (name == "--seed" && read(value, out.seed)) ||
             (name == "--runs" && read(value, out.runs)) ||
             (name == "--nodes" && read(value, out.nodes) && out.nodes > 0) ||
             (name == "--hours" && read(value, out.hours)) ||
             (name == "--quiet" && read(value, out.quiet)) ||
             (name == "--sessions" && read(value, out.sessions));
    }
    if (good) continue;
    fmt::print(stderr,
               "{} {}: there are --seed --runs --nodes --hours --quiet --sessions, each with a "
               "number, --exactly and --trace\n",
               name, value);
    return std::nullopt;
  }
  return out;
}

}  // namespace
}  // namespace flotilla::sim

int main(int argc, char** argv) {
  const auto options = flotilla::sim::parse(argc, argv);
  return options ? flotilla::sim::run(*options) : 2;
}
