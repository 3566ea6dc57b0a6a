#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/chat_stream.h"

// Many generations one after the other on one server: does it slow down, does it grow?
namespace flotilla::client {

struct SoakOptions {
  int generations = 10'000;
  int parallel = 8;
  int max_tokens = 8;  // of each answer, exactly
  std::string model;
  std::string key;
  Duration limit = std::chrono::minutes(2);  // without a byte, of one request
};

struct Generation {
  double ms = 0;  // from request to end
  std::int64_t tokens = 0;
  bool whole = false;
};

struct SoakSeen {
  std::vector<Generation> generations;  // in the order of their ends
  std::vector<std::int64_t> resident;   // after each; 0 = not known
  double wall_s = 0;
  std::string error;  // the first one
};

// Resident bytes of the processes that are measured.
using ReadResident = std::function<std::int64_t()>;

Task<SoakSeen> run_soak(Executor executor, http::Client& client, SoakOptions options,
                        ReadResident resident, const Clock& clock);

struct SoakReport {
  int generations = 0;
  int failed = 0;  // or cut
  double wall_s = 0;
  double tokens_per_s = 0;
  double first_ms = 0;        // median of generations 1-50
  double at_500_ms = 0;       // of 475-525; 0 = there were not as many
  double last_ms = 0;         // of the last 50
  double resident_first = 0;  // mean bytes of the first quarter; 0 = not measured
  double resident_last = 0;
  std::string error;

  double resident_growth() const;  // 0.01 = 1 % more in the last quarter
  double slowdown() const;         // of generation 500, else of the last ones, against the first
};
SoakReport report_of(const SoakSeen& seen);

std::string soak_table(const std::string& url, const std::string& model, const SoakReport& report);
std::string soak_json(const std::string& url, const std::string& model, const SoakReport& report);

}  // namespace flotilla::client
