#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flotilla::api {

// POST /admin/bench: a burst of streams on the server's own endpoint.
struct BenchSpec {
  std::string model;  // empty = the only one that is ready
  int requests = 20;
  int max_tokens = 100;
};
Result<BenchSpec> parse_bench(std::string_view body);

// One stream of it; times since the burst began.
struct BenchStream {
  int number = 0;
  std::string node;  // that answered
  double first_ms = 0;
  double last_ms = 0;
  std::int64_t tokens = 0;
  bool whole = false;
  std::string error;
};

struct BenchReport {
  BenchSpec spec;
  double took_ms = 0;
  std::vector<BenchStream> streams;
};
// With the rate of all tokens, the share that came whole and the times to the first token.
std::string to_json(const BenchReport& report);

}  // namespace flotilla::api
