#include "client/burst_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include <fmt/format.h>

#include "api/json_text.h"

namespace flotilla::client {
namespace {

double ms_between(Instant from, Instant to) { return to_ms(to - from); }

// Most answers that are between their first and last piece at one moment. Ends sort before begins:
// an answer that starts in the instant in which another ended does not overlap it.
int most_at_once(const BurstSeen& seen) {
  std::vector<std::pair<Instant, int>> steps;
  for (const StreamSeen& stream : seen.streams) {
    if (stream.pieces.size() < 2) continue;
    steps.emplace_back(stream.pieces.front(), +1);
    steps.emplace_back(stream.pieces.back(), -1);
  }
  std::ranges::sort(steps);
  int now = 0;
  int most = 0;
  for (const auto& [when, step] : steps) most = std::max(most, now += step);
  return most;
}

std::string duration(double ms) {
  if (ms >= 10'000) return fmt::format("{:.1f} s", ms / 1000);
  if (ms >= 1000) return fmt::format("{:.2f} s", ms / 1000);
  return fmt::format("{:.1f} ms", ms);
}

std::string heading(const BurstReport& report) {
  return fmt::format("burst: {} requests at once, {} tokens each", report.requests,
                     report.max_tokens);
}

std::string outcome(const BurstReport& report) {
  std::string text = fmt::format("{} of {}", report.completed, report.requests);
  if (report.truncated > 0) text += fmt::format(", {} truncated", report.truncated);
  if (report.failed > 0) text += fmt::format(", {} failed", report.failed);
  return text;
}

void append_spread(std::string& out, std::string_view name, const Spread& spread) {
  fmt::format_to(std::back_inserter(out), R"("{}":{{"p50":{:.1f},"p99":{:.1f},"max":{:.1f}}})",
                 name, spread.p50, spread.p99, spread.max);
}

std::string json_object(const NamedReport& burst) {
  const BurstReport& r = burst.report;
  std::string out = fmt::format(
      R"({{"url":{},"model":{},"requests":{},"max_tokens":{},"completed":{},"truncated":{},"failed":{},)"
      R"("wall_s":{:.3f},"tokens":{},"tokens_per_s":{:.1f},"stream_tokens_per_s":{:.1f},)"
      R"("streaming_max":{},"waves":{},)",
      api::json_string(burst.url), api::json_string(burst.model), r.requests, r.max_tokens,
      r.completed, r.truncated, r.failed, r.wall_s, r.tokens, r.tokens_per_s, r.stream_tokens_per_s,
      r.streaming_max, r.waves);
  append_spread(out, "ttft_ms", r.ttft_ms);
  out += ',';
  append_spread(out, "gap_ms", r.gap_ms);
  out += R"(,"error":)";
  out += r.first_error.empty() ? "null" : api::json_string(r.first_error);
  out += '}';
  return out;
}

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

// A row of the comparison: a figure of both, and their ratio where one means something.
struct Row {
  std::string_view name;
  std::function<double(const BurstReport&)> value;
  std::function<std::string(double)> text;
};

std::string plain(double value) { return fmt::format("{:.1f}", value); }
std::string count(double value) { return fmt::format("{:.0f}", value); }

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"wall", [](const auto& r) { return r.wall_s * 1000; }, duration},
      {"tokens/s in all", [](const auto& r) { return r.tokens_per_s; }, plain},
      {"tokens/s per stream", [](const auto& r) { return r.stream_tokens_per_s; }, plain},
      {"waves", [](const auto& r) { return static_cast<double>(r.waves); }, count},
      {"first token p50", [](const auto& r) { return r.ttft_ms.p50; }, duration},
      {"first token p99", [](const auto& r) { return r.ttft_ms.p99; }, duration},
      {"token gap p50", [](const auto& r) { return r.gap_ms.p50; }, duration},
      {"token gap p99", [](const auto& r) { return r.gap_ms.p99; }, duration},
      {"token gap max", [](const auto& r) { return r.gap_ms.max; }, duration},
  };
  return all;
}

template <class Get>
auto median(const std::vector<BurstReport>& reports, Get get) {
  std::vector<std::decay_t<decltype(get(reports[0]))>> values;
  for (const BurstReport& report : reports) values.push_back(get(report));
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Spread median_spread(const std::vector<BurstReport>& reports, Spread BurstReport::* member) {
  return {.p50 = median(reports, [&](const BurstReport& r) { return (r.*member).p50; }),
          .p99 = median(reports, [&](const BurstReport& r) { return (r.*member).p99; }),
          .max = median(reports, [&](const BurstReport& r) { return (r.*member).max; })};
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const auto rank = [&](double part) {
    const auto at = static_cast<std::size_t>(std::ceil(part * static_cast<double>(values.size())));
    return values[std::max<std::size_t>(at, 1) - 1];
  };
  return {.p50 = rank(0.50), .p99 = rank(0.99), .max = values.back()};
}

BurstReport report_of(const BurstSeen& seen) {
  BurstReport report;
  report.requests = static_cast<int>(seen.streams.size());
  report.max_tokens = seen.max_tokens;
  report.wall_s = to_s(seen.end - seen.begin);
  std::vector<double> ttft;
  std::vector<double> gaps;
  std::vector<double> rates;
  for (const StreamSeen& stream : seen.streams) {
    if (!stream.error.empty()) {
      report.failed += 1;
      if (report.first_error.empty()) report.first_error = stream.error;
    } else if (stream.whole && stream.completion_tokens == seen.max_tokens) {
      report.completed += 1;
    } else {
      report.truncated += 1;
    }
    report.tokens += stream.completion_tokens;
    if (stream.pieces.empty()) continue;
    ttft.push_back(ms_between(stream.sent, stream.pieces.front()));
    for (std::size_t i = 1; i < stream.pieces.size(); ++i) {
      gaps.push_back(ms_between(stream.pieces[i - 1], stream.pieces[i]));
    }
    const double streamed_s = to_s(stream.pieces.back() - stream.pieces.front());
    if (streamed_s > 0) {
      rates.push_back(static_cast<double>(stream.completion_tokens - 1) / streamed_s);
    }
  }
  report.tokens_per_s = ratio(static_cast<double>(report.tokens), report.wall_s);
  report.stream_tokens_per_s = spread_of(std::move(rates)).p50;
  report.ttft_ms = spread_of(std::move(ttft));
  report.gap_ms = spread_of(std::move(gaps));
  report.streaming_max = most_at_once(seen);
  if (report.streaming_max > 0) {
    report.waves = (report.requests + report.streaming_max - 1) / report.streaming_max;
  }
  return report;
}

BurstReport median_of(const std::vector<BurstReport>& reports) {
  BurstReport out = reports.front();
  if (reports.size() == 1) return out;
  out.requests = out.completed = out.truncated = out.failed = 0;
  for (const BurstReport& report : reports) {
    out.requests += report.requests;
    out.completed += report.completed;
    out.truncated += report.truncated;
    out.failed += report.failed;
    if (out.first_error.empty()) out.first_error = report.first_error;
  }
  out.wall_s = median(reports, [](const BurstReport& r) { return r.wall_s; });
  out.tokens = median(reports, [](const BurstReport& r) { return r.tokens; });
  out.tokens_per_s = median(reports, [](const BurstReport& r) { return r.tokens_per_s; });
  out.stream_tokens_per_s =
      median(reports, [](const BurstReport& r) { return r.stream_tokens_per_s; });
  out.streaming_max = median(reports, [](const BurstReport& r) { return r.streaming_max; });
  out.waves = median(reports, [](const BurstReport& r) { return r.waves; });
  out.ttft_ms = median_spread(reports, &BurstReport::ttft_ms);
  out.gap_ms = median_spread(reports, &BurstReport::gap_ms);
  return out;
}

std::string burst_table(const NamedReport& burst) {
  const BurstReport& r = burst.report;
  std::string out = fmt::format("{}\n{} at {}\n\n", heading(r), burst.model, burst.url);
  const auto line = [&](std::string_view name, const std::string& value, const std::string& more) {
    out += fmt::format("  {:<14}{:>12}{}{}\n", name, value, more.empty() ? "" : "   ", more);
  };
  const auto spread = [&](std::string_view name, const Spread& s) {
    out += fmt::format("  {:<14}{:>12}{:>12}{:>12}\n", name, duration(s.p50), duration(s.p99),
                       duration(s.max));
  };
  line("completed", outcome(r), r.first_error);
  line("wall", duration(r.wall_s * 1000), "");
  line("tokens/s", plain(r.tokens_per_s), fmt::format("{:.1f} per stream", r.stream_tokens_per_s));
  line("waves", count(r.waves), fmt::format("{} answers at once", r.streaming_max));
  out += fmt::format("\n  {:<14}{:>12}{:>12}{:>12}\n", "", "p50", "p99", "max");
  spread("first token", r.ttft_ms);
  spread("token gap", r.gap_ms);
  return out;
}

std::string burst_json(const NamedReport& burst) { return json_object(burst); }

std::string comparison_table(const NamedReport& first, const NamedReport& second, int rounds) {
  BurstReport a_round = first.report;
  a_round.requests /= std::max(rounds, 1);
  std::string out =
      fmt::format("{}; medians of {} rounds, in turns\nA  {} at {}\nB  {} at {}\n\n",
                  heading(a_round), rounds, first.model, first.url, second.model, second.url);
  out += fmt::format("  {:<20}{:>14}{:>14}{:>9}\n", "", "A", "B", "A / B");
  out += fmt::format("  {:<20}{:>14}{:>14}\n", "completed", outcome(first.report),
                     outcome(second.report));
  for (const Row& row : rows()) {
    const double a = row.value(first.report);
    const double b = row.value(second.report);
    out += fmt::format("  {:<20}{:>14}{:>14}{:>9.2f}\n", row.name, row.text(a), row.text(b),
                       ratio(a, b));
  }
  for (const NamedReport* side : {&first, &second}) {
    if (side->report.first_error.empty()) continue;
    out += fmt::format("  {}: {}\n", side->url, side->report.first_error);
  }
  return out;
}

std::string comparison_json(const NamedReport& first, const NamedReport& second, int rounds) {
  return fmt::format(R"({{"rounds":{},"a":{},"b":{},"ratio":{{"wall":{:.3f},"tokens_per_s":{:.3f},)"
                     R"("stream_tokens_per_s":{:.3f},"ttft_p50":{:.3f},"gap_p99":{:.3f}}}}})",
                     rounds, json_object(first), json_object(second),
                     ratio(first.report.wall_s, second.report.wall_s),
                     ratio(first.report.tokens_per_s, second.report.tokens_per_s),
                     ratio(first.report.stream_tokens_per_s, second.report.stream_tokens_per_s),
                     ratio(first.report.ttft_ms.p50, second.report.ttft_ms.p50),
                     ratio(first.report.gap_ms.p99, second.report.gap_ms.p99));
}

}  // namespace flotilla::client
