#include "gateway/metrics.h"

#include <map>
#include <prometheus/metric_family.h>

#include <gtest/gtest.h>

namespace flotilla::gateway {
namespace {

using prometheus::ClientMetric;

std::map<std::string, std::vector<ClientMetric>> collect(const Metrics& metrics) {
  std::map<std::string, std::vector<ClientMetric>> out;
  for (const auto& family : metrics.collect()) out[family.name] = family.metric;
  return out;
}

std::string label(const ClientMetric& metric, const std::string& name) {
  for (const auto& label : metric.label) {
    if (label.name == name) return label.value;
  }
  return "<none>";
}

TEST(Metrics, CountsRequestsByPoolStatusAndReplica) {
  Metrics metrics;
  metrics.dispatched("m", "a", 0.002);
  const Metrics::Answers answers = metrics.answers_of("m", "a");
  answers.first_token(0.3);
  answers.token_gap(0.004);
  answers.token_gap(20);
  metrics.failed_over({.pool = "m", .replica = "a", .begun = true, .generated = 5});
  metrics.ended({.pool = "m",
                 .replica = "b",
                 .status = 200,
                 .took_s = 2,
                 .usage = {.prompt_tokens = 30, .cached_tokens = 10, .completion_tokens = 7}});
  metrics.ended({.pool = "", .replica = "", .status = 404, .took_s = 0.1, .usage = {}});
  const auto found = collect(metrics);
  ASSERT_EQ(found.at("flotilla_requests_total").size(), 2U);
  const auto& gaps = found.at("flotilla_inter_token_seconds").at(0);
  EXPECT_EQ(label(gaps, "pool"), "m");
  EXPECT_EQ(label(gaps, "replica"), "a");
  EXPECT_EQ(gaps.histogram.sample_count, 2U);
  EXPECT_DOUBLE_EQ(gaps.histogram.sample_sum, 20.004);
  EXPECT_EQ(found.at("flotilla_time_to_first_token_seconds").at(0).histogram.sample_count, 1U);
  EXPECT_EQ(found.at("flotilla_queue_seconds").at(0).histogram.sample_count, 1U);
  EXPECT_EQ(label(found.at("flotilla_queue_seconds").at(0), "replica"), "a");
  EXPECT_EQ(found.at("flotilla_cache_hits_total").at(0).counter.value, 1);
  EXPECT_EQ(label(found.at("flotilla_failovers_total").at(0), "phase"), "after_first_token");
  EXPECT_EQ(found.at("flotilla_prompt_tokens_total").at(0).counter.value, 30);
  EXPECT_EQ(found.at("flotilla_cached_prompt_tokens_total").at(0).counter.value, 10);
  std::map<std::string, double> generated;
  for (const auto& series : found.at("flotilla_generated_tokens_total"))
    generated[label(series, "replica")] = series.counter.value;
  EXPECT_EQ(generated, (std::map<std::string, double>{{"a", 5}, {"b", 7}}));
  EXPECT_EQ(found.at("flotilla_request_seconds").size(), 1U) << "only of requests with a pool";
}

TEST(Metrics, SeriesAreBounded) {
  Metrics metrics;
  for (std::size_t i = 0; i < 2 * Metrics::kSeriesMax; ++i) {
    metrics.answers_of("pool" + std::to_string(i), "a").token_gap(0.01);
  }
  const auto gaps = collect(metrics).at("flotilla_inter_token_seconds");
  EXPECT_EQ(gaps.size(), Metrics::kSeriesMax + 1);
  std::uint64_t others = 0;
  for (const auto& series : gaps) {
    if (label(series, "pool") == "other") others = series.histogram.sample_count;
  }
  EXPECT_EQ(others, Metrics::kSeriesMax);
}

}  // namespace
}  // namespace flotilla::gateway
