#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/task.h"
#include "client/burst_report.h"
#include "http/client.h"

// How fast a server relays streams: a number of connections ask again and again for some seconds.
namespace flotilla::client {

struct RateOptions {
  int connections = 64;
  Duration length = std::chrono::seconds(5);
  std::string model;
  std::string key;
};

struct RateSeen {
  std::uint64_t chunks = 0;
  std::uint64_t streams = 0;  // whole ones
  std::uint64_t failed = 0;
  double seconds = 0;
  std::vector<double> first_byte_ms = {};
  std::string first_error = {};

  double chunks_per_s() const { return seconds > 0 ? static_cast<double>(chunks) / seconds : 0; }
};
Task<RateSeen> run_rate(Executor executor, http::Client& client, RateOptions options,
                        const Clock& clock);

struct NamedRates {
  std::string url;
  std::vector<RateSeen> rounds;
};
// Medians over the rounds; with two servers also first / second.
std::string rate_table(const std::vector<NamedRates>& servers);
std::string rate_json(const std::vector<NamedRates>& servers);

}  // namespace flotilla::client
