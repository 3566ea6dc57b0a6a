#include "runner/load_meter.h"

#include <algorithm>

namespace flotilla::runner {
namespace {

constexpr Duration kPeakWindow = std::chrono::seconds(30);
constexpr Duration kSampleEvery = std::chrono::milliseconds(250);
constexpr Duration kRateWindow = std::chrono::seconds(2);

}  // namespace

void LoadMeter::add(const StepStats& stats, Instant now) {
  if (now - peak_.since >= kPeakWindow) {
    peak_before_ms_ = now - peak_.since < 2 * kPeakWindow ? peak_.step_ms : 0;
    peak_ = {.since = now, .step_ms = 0};
  }
  if (stats.step != stats_.step) peak_.step_ms = std::max(peak_.step_ms, stats.step_ms);
  if (samples_.empty()) samples_.push_back(sample(now));
  stats_ = stats;
}

api::RunnerEvent LoadMeter::event(int held, Instant now) {
  if (samples_.empty() || now - samples_.back().at >= kSampleEvery) {
    samples_.push_back(sample(now));
  }
  while (samples_.size() > 1 && now - samples_[1].at >= kRateWindow) samples_.pop_front();
  const Sample& first = samples_.front();
  const double span_s = to_s(now - first.at);
  const auto tokens = static_cast<double>(stats_.tokens - first.tokens);
  const double outside_ms = stats_.outside_ms - first.outside_ms;
  const double steps_ms = outside_ms + stats_.passes_ms - first.passes_ms;
  return {.step = stats_.step,
          .step_ms_max = std::max(peak_.step_ms, peak_before_ms_),
          .running = stats_.running,
          .waiting = std::max(held - stats_.running - stats_.parked, 0),
          .kv_free = stats_.kv_free,
          .generated_tokens = stats_.tokens,
          .prompt_tokens = stats_.prompt_tokens,
          .cached_tokens = stats_.cached_tokens,
          .tokens_per_s = span_s > 0 ? tokens / span_s : 0,
          .step_overhead = steps_ms > 0 ? outside_ms / steps_ms : 0,
          .trims = stats_.trims,
          .trimmed = stats_.trimmed,
          .passes = stats_.counts,
          .stored_bytes = stats_.stored_bytes,
          .stored = stats_.stored,
          .disk_bytes = stats_.disk_bytes,
          .drafts = {.drafted_tokens = stats_.drafted_tokens,
                     .accepted_tokens = stats_.accepted_tokens}};
}

}  // namespace flotilla::runner
