#include "gateway/history.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/json_text.h"

namespace flotilla::gateway {
namespace {

constexpr double kFirstMs = 0.1;  // the first bucket's upper edge
constexpr double kGrowth = 1.13;  // 0.1 ms x 1.13^127 is over 9 minutes

// Consecutive samples as one point: sums and means of what flows, the worst of what hurts.
HistorySample merge(std::span<const HistorySample> samples) {
  HistorySample out = samples.back();
  float p50_ttft = 0, p50_gap = 0, n_ttft = 0, n_gap = 0, share = 0, n_share = 0;
  out.tokens_per_s = out.in_flight = 0;
  const auto worst = [](std::optional<float>& into, const std::optional<float>& value) {
    if (value) into = std::max(into.value_or(0), *value);
  };
  for (const HistorySample& sample : samples) {
    out.tokens_per_s += sample.tokens_per_s / static_cast<float>(samples.size());
    out.in_flight += sample.in_flight / static_cast<float>(samples.size());
    out.queue = std::max(out.queue, sample.queue);
    out.replicas_live = std::min(out.replicas_live, sample.replicas_live);
    worst(out.ttft_p99_ms, sample.ttft_p99_ms);
    worst(out.gap_p99_ms, sample.gap_p99_ms);
    if (sample.ttft_p50_ms) p50_ttft += *sample.ttft_p50_ms, ++n_ttft;
    if (sample.gap_p50_ms) p50_gap += *sample.gap_p50_ms, ++n_gap;
    if (sample.cached_share) share += *sample.cached_share, ++n_share;
  }
  if (n_ttft > 0) out.ttft_p50_ms = p50_ttft / n_ttft;
  if (n_gap > 0) out.gap_p50_ms = p50_gap / n_gap;
  if (n_share > 0) out.cached_share = share / n_share;
  return out;
}

void append_value(std::string& out, const std::optional<float>& value) {
  if (value) {
    api::append_number(out, static_cast<double>(*value));
  } else {
    out += "null";
  }
}

template <class Get>
void append_series(std::string& out, const char* name, const std::vector<HistorySample>& points,
                   Get get) {
  fmt::format_to(std::back_inserter(out), R"(,"{}":[)", name);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i > 0) out += ',';
    append_value(out, get(points[i]));
  }
  out += ']';
}

constexpr struct {
  const char* name;
  std::optional<float> (*get)(const HistorySample&);
} kFigures[] = {
    {"tokens_per_s", [](const HistorySample& s) { return std::optional(s.tokens_per_s); }},
    {"queue", [](const HistorySample& s) { return std::optional(s.queue); }},
    {"in_flight", [](const HistorySample& s) { return std::optional(s.in_flight); }},
    {"replicas_live", [](const HistorySample& s) { return std::optional(s.replicas_live); }},
    {"ttft_p50_ms", [](const HistorySample& s) { return s.ttft_p50_ms; }},
    {"ttft_p99_ms", [](const HistorySample& s) { return s.ttft_p99_ms; }},
    {"gap_p50_ms", [](const HistorySample& s) { return s.gap_p50_ms; }},
    {"gap_p99_ms", [](const HistorySample& s) { return s.gap_p99_ms; }},
    {"cached_share", [](const HistorySample& s) { return s.cached_share; }},
};

std::string name_json(const HistoryOf& of) {
  return R"({"pool":)" + api::json_string(of.pool) + R"(,"node":)" +
         (of.node.empty() ? "null" : api::json_string(of.node));
}

std::optional<float> as_float(std::optional<double> value) {
  return value ? std::optional(static_cast<float>(*value)) : std::nullopt;
}

}  // namespace

void LatencyCounts::add(double ms) {
  static const double kLogGrowth = std::log(kGrowth);
  const double bucket = ms <= kFirstMs ? 0 : std::ceil(std::log(ms / kFirstMs) / kLogGrowth);
  const auto last = static_cast<double>(counts_.size() - 1);
  ++counts_[static_cast<std::size_t>(std::min(bucket, last))];
  ++total_;
}

std::optional<double> LatencyCounts::percentile(double share) const {
  if (total_ == 0) return std::nullopt;
  const auto wanted =
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(share * double(total_))));
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  while ((seen += counts_[bucket]) < wanted) ++bucket;
  // The middle of the bucket, as ratios go.
  return kFirstMs * std::pow(kGrowth, static_cast<double>(bucket) - 0.5);
}

void LatencyCounts::clear() {
  counts_.fill(0);
  total_ = 0;
}

void HistorySeries::count_prompt(std::uint64_t tokens, std::uint64_t cached) {
  prompt_ += tokens;
  cached_ += cached;
}

std::shared_ptr<HistorySeries> History::series_of(const HistoryOf& of) {
  if (!series_.contains(of) && series_.size() >= kSeriesMax) {
    // The one that has been silent longest makes room.
    series_.erase(std::ranges::min_element(series_, {}, [](const auto& entry) {
      const auto& samples = entry.second->samples_;
      return samples.empty() ? 0 : samples.back().unix_s;
    }));
  }
  std::shared_ptr<HistorySeries>& series = series_[of];
  if (!series) series = std::make_shared<HistorySeries>();
  return series;
}

void History::close_step(const HistoryOf& of, const Gauges& gauges, std::int64_t unix_s) {
  const std::shared_ptr<HistorySeries> series = series_of(of);
  HistorySample& sample = series->samples_.emplace_back();
  sample.unix_s = unix_s;
  sample.tokens_per_s =
      static_cast<float>(static_cast<double>(series->tokens_) / static_cast<double>(kStep.count()));
  sample.queue = static_cast<float>(gauges.queue);
  sample.in_flight = static_cast<float>(gauges.in_flight);
  sample.replicas_live = static_cast<float>(gauges.replicas_live);
  sample.ttft_p50_ms = as_float(series->ttft_.percentile(0.5));
  sample.ttft_p99_ms = as_float(series->ttft_.percentile(0.99));
  sample.gap_p50_ms = as_float(series->gaps_.percentile(0.5));
  sample.gap_p99_ms = as_float(series->gaps_.percentile(0.99));
  if (series->prompt_ > 0)
    sample.cached_share = static_cast<float>(static_cast<double>(series->cached_) /
                                             static_cast<double>(series->prompt_));
  if (series->samples_.size() > kSamplesMax) series->samples_.pop_front();
  series->tokens_ = series->prompt_ = series->cached_ = 0;
  series->ttft_.clear();
  series->gaps_.clear();
}

std::string History::series_json(const Wanted& wanted, std::int64_t unix_s) const {
  const auto steps = static_cast<std::size_t>(wanted.range / kStep);
  const std::size_t stride = std::max<std::size_t>(1, (steps + kPointsMax - 1) / kPointsMax);
  std::string out = fmt::format(R"({{"range_s":{},"step_s":{},"pools":[)", wanted.range.count(),
                                stride * static_cast<std::size_t>(kStep.count()));
  bool first = true;
  for (const auto& [of, series] : series_) {
    if (!wanted.pool.empty() && of.pool != wanted.pool) continue;
    if (of.node.empty() == wanted.replicas) continue;
    const auto from = std::ranges::lower_bound(series->samples_, unix_s - wanted.range.count(), {},
                                               &HistorySample::unix_s);
    const std::vector<HistorySample> kept(from, series->samples_.end());
    std::vector<HistorySample> points;
    for (std::size_t at = 0; at < kept.size(); at += stride) {
      points.push_back(merge(std::span(kept).subspan(at, std::min(stride, kept.size() - at))));
    }
    if (!std::exchange(first, false)) out += ',';
    out += name_json(of) + R"(,"unix_s":[)";
    for (std::size_t i = 0; i < points.size(); ++i) {
      fmt::format_to(std::back_inserter(out), "{}{}", i > 0 ? "," : "", points[i].unix_s);
    }
    out += ']';
    for (const auto& figure : kFigures) append_series(out, figure.name, points, figure.get);
    out += '}';
  }
  return out + "]}";
}

std::string History::newest_json() const {
  std::string out = "[";
  for (const auto& [of, series] : series_) {
    if (series->samples_.empty()) continue;
    const HistorySample& sample = series->samples_.back();
    if (out.size() > 1) out += ',';
    out += name_json(of);
    fmt::format_to(std::back_inserter(out), R"(,"unix_s":{})", sample.unix_s);
    for (const auto& figure : kFigures) {
      fmt::format_to(std::back_inserter(out), R"(,"{}":)", figure.name);
      append_value(out, figure.get(sample));
    }
    out += '}';
  }
  return out + "]";
}

Pace::Pace(History& history, Metrics& metrics, const Clock& clock, std::string pool)
    : history_(&history),
      metrics_(&metrics),
      pool_(std::move(pool)),
      of_pool_(history.series_of({.pool = pool_})),
      last_(clock.now()) {}

void Pace::in_replica(const std::string& replica) {
  if (history_ == nullptr) return;
  answers_ = metrics_->answers_of(pool_, replica);
  of_replica_ = history_->series_of({.pool = pool_, .node = replica});
}

// Gaps are what a reader sees, so they are counted in the first choice alone.
void Pace::tokens(int choice, std::size_t count, Instant now) {
  if (!of_replica_ || count == 0) return;
  for (HistorySeries* series : {of_pool_.get(), of_replica_.get()}) series->count_tokens(count);
  if (choice != 0) return;
  const Duration since = now - last_;
  for (HistorySeries* series : {of_pool_.get(), of_replica_.get()}) {
    if (begun_)
      series->token_gap(to_ms(since));
    else
      series->first_token(to_ms(since));
  }
  if (begun_)
    answers_.token_gap(to_s(since));
  else
    answers_.first_token(to_s(since));
  begun_ = true;
  last_ = now;
}

void Pace::prompt(std::uint64_t tokens, std::uint64_t cached) {
  if (!of_pool_ || tokens == 0) return;
  of_pool_->count_prompt(tokens, cached);
  if (of_replica_) of_replica_->count_prompt(tokens, cached);
}

}  // namespace flotilla::gateway
