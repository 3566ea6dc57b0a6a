#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "gateway/metrics.h"

namespace flotilla::gateway {

// Durations counted in buckets, each 13 % wider than the one before, from 0.1 ms to 10 minutes:
// bounded memory, percentiles within 7 %.
class LatencyCounts {
 public:
  void add(double ms);
  std::optional<double> percentile(double share) const;  // none: nothing was counted
  void clear();

 private:
  std::array<std::uint32_t, 128> counts_{};
  std::uint64_t total_ = 0;
};

// What one pool did in one step. Latencies are absent where no token came.
struct HistorySample {
  std::int64_t unix_s = 0;  // the step's end
  float tokens_per_s = 0;
  float queue = 0;
  float in_flight = 0;
  float replicas_live = 0;
  std::optional<float> ttft_p50_ms, ttft_p99_ms;  // from the request's arrival to its first token
  std::optional<float> gap_p50_ms, gap_p99_ms;    // between two tokens of one answer
};

// What each pool did in the last 24 hours, for the charts: one sample every 5 s, at most 64 pools,
// which is 64 MiB at most. I/O thread only.
class History {
 public:
  static constexpr std::chrono::seconds kStep{5};
  static constexpr std::size_t kSamplesMax = std::chrono::hours(24) / kStep;
  static constexpr std::size_t kPoolsMax = 64;
  static constexpr std::size_t kPointsMax = 360;  // of one series in an answer

  struct Gauges {
    double queue = 0;
    double in_flight = 0;
    double replicas_live = 0;
  };

  void count_tokens(const std::string& pool, std::size_t tokens);
  void first_token(const std::string& pool, double ms);
  void token_gap(const std::string& pool, double ms);
  // Ends the step of one pool.
  void close_step(const std::string& pool, const Gauges& gauges, std::int64_t unix_s);

  bool knows(const std::string& pool) const { return pools_.contains(pool); }
  // The series of one pool (empty = of all) over `range` until `unix_s`, thinned to kPointsMax.
  std::string series_json(const std::string& pool, std::chrono::seconds range,
                          std::int64_t unix_s) const;
  // The newest sample of each pool.
  std::string newest_json() const;

 private:
  struct Series {
    std::deque<HistorySample> samples;
    LatencyCounts ttft, gaps;  // of the step under way
    std::uint64_t tokens = 0;
  };
  Series& series_of(const std::string& pool);

  std::map<std::string, Series> pools_;
};

// One request's tokens, told to its pool's history and the metrics as they come. Without a history:
// nowhere.
class Pace {
 public:
  Pace() = default;
  Pace(History& history, Metrics& metrics, const Clock& clock, std::string pool);
  // Before its tokens: which replica they come from.
  void in_replica(const std::string& replica) { answers_ = metrics_->answers_of(pool_, replica); }
  void tokens(int choice, std::size_t count);

 private:
  History* history_ = nullptr;
  Metrics* metrics_ = nullptr;
  const Clock* clock_ = nullptr;
  std::string pool_;
  Metrics::Answers answers_;
  Instant last_{};
  bool begun_ = false;
};

}  // namespace flotilla::gateway
