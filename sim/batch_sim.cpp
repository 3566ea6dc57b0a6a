#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "base/random.h"
#include "sim/batch_history.h"

// batch_sim [--seed N] [--runs N] [--verbose]: histories of a runner's scheduler in virtual time.
// Without --seed a fresh one; a failure names the seed that replays it with --runs 1.
int main(int argc, char** argv) {
  std::uint64_t seed = flotilla::random_seed() % 1'000'000'000;
  std::uint64_t runs = 100;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--verbose") {
      verbose = true;
    } else if (i + 1 < argc && flag == "--seed") {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (i + 1 < argc && flag == "--runs") {
      runs = std::strtoull(argv[++i], nullptr, 10);
    } else {
      fmt::print(stderr, "usage: batch_sim [--seed N] [--runs N] [--verbose]\n");
      return 2;
    }
  }
  fmt::print("batch_sim --seed {} --runs {}\n", seed, runs);
  double worst_gap = 0;
  double worst_wait = 0;
  long long passes = 0;
  long long requests = 0;
  int failed = 0;
  for (std::uint64_t s = seed; s < seed + runs; ++s) {
    const flotilla::sim::BatchOutcome outcome = flotilla::sim::run_batch_history(s);
    worst_gap = std::max(worst_gap, outcome.worst_gap);
    worst_wait = std::max(worst_wait, outcome.worst_wait);
    passes += outcome.passes;
    requests += outcome.requests;
    if (verbose || !outcome.breaches.empty()) {
      fmt::print(
          "seed {}: {}: {} requests, {} passes, {:.0f} s, gap {:.2f} of target, wait {:.2f}\n", s,
          outcome.setting, outcome.requests, outcome.passes, outcome.virtual_s, outcome.worst_gap,
          outcome.worst_wait);
    }
    for (const std::string& what : outcome.breaches) fmt::print("  {}\n", what);
    failed += outcome.breaches.empty() ? 0 : 1;
  }
  fmt::print(
      "{} requests, {} passes; worst pass {:.2f} of its target, worst wait {:.2f} of its bound; "
      "{} of {} seeds failed\n",
      requests, passes, worst_gap, worst_wait, failed, runs);
  return failed == 0 ? 0 : 1;
}
