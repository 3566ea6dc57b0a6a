#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
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

// What a history is kept of: a pool, or one of its replicas.
struct HistoryOf {
  std::string pool;
  std::string node = {};  // empty: the pool's own
  auto operator<=>(const HistoryOf&) const = default;
};

// What one of them did in one step. Latencies are absent where no token came.
struct HistorySample {
  std::int64_t unix_s = 0;  // the step's end
  float tokens_per_s = 0;
  float queue = 0;
  float in_flight = 0;
  float replicas_live = 0;
  std::optional<float> ttft_p50_ms, ttft_p99_ms;  // from the request's arrival to its first token
  std::optional<float> gap_p50_ms, gap_p99_ms;    // between two tokens of one answer
  std::optional<float> cached_share;  // of the prompts that were read: not computed again
};

// What one of them does, as it happens.
class HistorySeries {
 public:
  void count_tokens(std::size_t tokens) { tokens_ += tokens; }
  void count_prompt(std::uint64_t tokens, std::uint64_t cached);
  void first_token(double ms) { ttft_.add(ms); }
  void token_gap(double ms) { gaps_.add(ms); }

 private:
  friend class History;
  std::deque<HistorySample> samples_;
  LatencyCounts ttft_, gaps_;  // these and what follows: of the step under way
  std::uint64_t tokens_ = 0;
  std::uint64_t prompt_ = 0, cached_ = 0;  // tokens
};

// What each pool and each replica did in the last 24 hours, for the charts: one sample every 5 s,
// at most 128 series, which is 160 MiB at most. I/O thread only.
class History {
 public:
  static constexpr std::chrono::seconds kStep{5};
  static constexpr std::size_t kSamplesMax = std::chrono::hours(24) / kStep;
  static constexpr std::size_t kSeriesMax = 128;
  static constexpr std::size_t kPointsMax = 360;  // of one series in an answer

  struct Gauges {
    double queue = 0;
    double in_flight = 0;
    double replicas_live = 0;
  };

  // Kept by who tells it of many tokens.
  std::shared_ptr<HistorySeries> series_of(const HistoryOf& of);
  // Ends the step of one series.
  void close_step(const HistoryOf& of, const Gauges& gauges, std::int64_t unix_s);

  bool knows(const std::string& pool) const { return series_.contains({.pool = pool}); }
  struct Wanted {
    std::string pool = {};  // empty: all
    bool replicas = false;  // their series, instead of the pools'
    std::chrono::seconds range{};
  };
  // Until `unix_s`, thinned to kPointsMax.
  std::string series_json(const Wanted& wanted, std::int64_t unix_s) const;
  // The newest sample of each series.
  std::string newest_json() const;

 private:
  std::map<HistoryOf, std::shared_ptr<HistorySeries>> series_;
};

// One request's tokens, told to its pool's and its replica's history and the metrics as they come.
// Without a history: nowhere.
class Pace {
 public:
  Pace() = default;
  Pace(History& history, Metrics& metrics, const Clock& clock, std::string pool);
  // Before its tokens: which replica they come from.
  void in_replica(const std::string& replica);
  // `now`: when they came.
  void tokens(int choice, std::size_t count, Instant now);
  // How much of its prompt was there already.
  void prompt(std::uint64_t tokens, std::uint64_t cached);

 private:
  History* history_ = nullptr;
  Metrics* metrics_ = nullptr;
  std::string pool_;
  std::shared_ptr<HistorySeries> of_pool_;
  std::shared_ptr<HistorySeries> of_replica_;  // null: not in one yet
  Metrics::Answers answers_;
  Instant last_{};
  bool begun_ = false;
};

}  // namespace flotilla::gateway
