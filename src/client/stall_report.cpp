#include "client/stall_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/json_text.h"

namespace flotilla::client {
namespace {

double first_token_ms(const StreamSeen& seen) {
  return seen.pieces.empty() ? 0 : to_ms(seen.pieces.front() - seen.sent);
}

// Gaps of which any part lies in [from, to).
std::vector<double> gaps_within(const std::vector<StreamSeen>& streams, Instant from, Instant to) {
  std::vector<double> gaps;
  for (const StreamSeen& stream : streams) {
    for (std::size_t i = 1; i < stream.pieces.size(); ++i) {
      const Instant begin = stream.pieces[i - 1];
      const Instant end = stream.pieces[i];
      if (end > from && begin < to) gaps.push_back(to_ms(end - begin));
    }
  }
  return gaps;
}

std::string spread_json(const Spread& spread) {
  return fmt::format(R"({{"p50":{:.1f},"p99":{:.1f},"max":{:.1f}}})", spread.p50, spread.p99,
                     spread.max);
}

}  // namespace

StallReport report_of(const StallSeen& seen, double engine_alone_ms) {
  StallReport report;
  report.streams = static_cast<int>(seen.streams.size());
  report.prompt_tokens = seen.beside.prompt_tokens;
  report.alone_ms = first_token_ms(seen.alone);
  report.beside_ms = first_token_ms(seen.beside);
  report.engine_alone_ms = engine_alone_ms;
  Instant streaming{};  // all streams decode from here on
  for (const StreamSeen& stream : seen.streams) {
    if (!stream.pieces.empty()) streaming = std::max(streaming, stream.pieces.front());
    if (report.error.empty()) report.error = stream.error;
  }
  for (const StreamSeen& small : seen.small) {
    report.small_ttft_ms.push_back(first_token_ms(small));
    if (report.error.empty()) report.error = small.error;
  }
  if (report.error.empty()) report.error = seen.beside.error;
  const auto before = gaps_within(seen.streams, streaming, seen.beside.sent);
  const Instant answered =
      seen.beside.pieces.empty() ? seen.beside.sent : seen.beside.pieces.front();
  const auto during = gaps_within(seen.streams, seen.beside.sent, answered);
  report.gaps_before = static_cast<int>(before.size());
  report.gaps_during = static_cast<int>(during.size());
  report.before_ms = spread_of(before);
  report.during_ms = spread_of(during);
  return report;
}

std::vector<StallCheck> checks_of(const StallReport& report, const StallLimits& limits) {
  const double gap = report.before_ms.p50;
  std::vector<StallCheck> checks = {
      {"gap p99", report.during_ms.p99, std::max(limits.gap_p99_factor * gap, limits.gap_p99_ms)},
      {"gap max", report.during_ms.max, std::max(limits.gap_max_factor * gap, limits.gap_max_ms)}};
  for (std::size_t i = 0; i < report.small_ttft_ms.size(); ++i) {
    checks.push_back(
        {fmt::format("small request {}", i + 1), report.small_ttft_ms[i], limits.small_ttft_ms});
  }
  if (report.alone_ms > 0) {
    checks.push_back(
        {"prompt / alone", report.beside_ms / report.alone_ms, limits.prompt_factor, false});
  }
  if (report.engine_alone_ms > 0) {
    checks.push_back({"beside / engine", report.beside_ms / report.engine_alone_ms,
                      limits.prompt_factor, false});
    checks.push_back(
        {"alone / engine", report.alone_ms / report.engine_alone_ms, limits.alone_factor, false});
  }
  return checks;
}

std::string stall_table(const std::string& url, const std::string& model, const StallReport& report,
                        const std::vector<StallCheck>& checks) {
  std::string out =
      fmt::format("stall: {} streams, then a prompt of {} tokens and {} small requests\n{} at {}\n",
                  report.streams, report.prompt_tokens, report.small_ttft_ms.size(), model, url);
  if (!report.error.empty()) out += fmt::format("failed: {}\n", report.error);
  out += fmt::format("\n  {:<16}{:>10}{:>10}{:>10}{:>8}\n", "gap, ms", "p50", "p99", "max", "gaps");
  const auto row = [&](std::string_view name, const Spread& spread, int gaps) {
    out += fmt::format("  {:<16}{:>10.1f}{:>10.1f}{:>10.1f}{:>8}\n", name, spread.p50, spread.p99,
                       spread.max, gaps);
  };
  row("before", report.before_ms, report.gaps_before);
  row("during", report.during_ms, report.gaps_during);
  out += fmt::format("\n  first token of the prompt: alone {:.2f} s, beside the streams {:.2f} s",
                     report.alone_ms / 1000, report.beside_ms / 1000);
  if (report.engine_alone_ms > 0) {
    out += fmt::format(", the engine alone {:.2f} s", report.engine_alone_ms / 1000);
  }
  out += fmt::format("\n\n  {:<16}{:>10}{:>10}\n", "", "seen", "limit");
  for (const StallCheck& check : checks) {
    out += fmt::format("  {:<16}{:>10.{}f}{:>10.{}f}   {}\n", check.name, check.value,
                       check.in_ms ? 0 : 2, check.limit, check.in_ms ? 0 : 2,
                       check.holds() ? "ok" : "OVER");
  }
  return out;
}

std::string stall_json(const std::string& url, const std::string& model, const StallReport& report,
                       const std::vector<StallCheck>& checks) {
  std::vector<std::string> small;
  for (const double ms : report.small_ttft_ms) small.push_back(fmt::format("{:.1f}", ms));
  std::vector<std::string> over;
  for (const StallCheck& check : checks) {
    if (!check.holds()) over.push_back(api::json_string(check.name));
  }
  return fmt::format(
      R"({{"url":{},"model":{},"streams":{},"prompt_tokens":{},"gap_before_ms":{},)"
      R"("gap_during_ms":{},"gaps_before":{},"gaps_during":{},"small_ttft_ms":[{}],)"
      R"("alone_ms":{:.1f},"beside_ms":{:.1f},"engine_alone_ms":{:.1f},"over":[{}],"error":{}}})",
      api::json_string(url), api::json_string(model), report.streams, report.prompt_tokens,
      spread_json(report.before_ms), spread_json(report.during_ms), report.gaps_before,
      report.gaps_during, fmt::join(small, ","), report.alone_ms, report.beside_ms,
      report.engine_alone_ms, fmt::join(over, ","),
      report.error.empty() ? "null" : api::json_string(report.error));
}

}  // namespace flotilla::client
