#pragma once

#include <string>
#include <vector>

#include "client/burst.h"

// A burst as figures, and the figures as text. Pure.
namespace flotilla::client {

struct Spread {
  double p50 = 0;
  double p99 = 0;
  double max = 0;
};
// Nearest rank; zeros for nothing.
Spread spread_of(std::vector<double> values);

struct BurstReport {
  int requests = 0;
  int max_tokens = 0;
  int completed = 0;  // whole and of exactly max_tokens tokens
  int truncated = 0;  // ended, but not so
  int failed = 0;
  double wall_s = 0;
  std::int64_t tokens = 0;
  double tokens_per_s = 0;         // all streams together, over the wall time
  double stream_tokens_per_s = 0;  // median over streams, from first to last piece
  int streaming_max = 0;           // most answers between first and last piece at one moment
  int waves = 0;                   // ceil(requests / streaming_max)
  Spread ttft_ms;
  Spread gap_ms;  // between pieces of one answer
  std::string first_error;

  bool all_well() const { return completed == requests; }
};

BurstReport report_of(const BurstSeen& seen);

// Each figure's median over repeated bursts; counts of failures are the sums.
BurstReport median_of(const std::vector<BurstReport>& reports);

struct NamedReport {
  std::string url;
  std::string model;
  BurstReport report;
};

std::string burst_table(const NamedReport& burst);
std::string burst_json(const NamedReport& burst);
// Two endpoints side by side, and first / second where a ratio means something.
std::string comparison_table(const NamedReport& first, const NamedReport& second, int rounds);
std::string comparison_json(const NamedReport& first, const NamedReport& second, int rounds);

}  // namespace flotilla::client
