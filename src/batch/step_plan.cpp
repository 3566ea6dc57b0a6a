#include "batch/step_plan.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/check.h"

namespace flotilla::batch {
namespace {

constexpr double kOldestShare = 0.25;
constexpr int kChunkMultiple = 8;  // rows that kernels compute together
// Of a pass when nobody decodes: whoever comes meanwhile waits for its end. Shorter ones cost the
// prompt more (SmolLM2 Q4_1 by passes of 63 / 128 / 256 / 512 tokens: 120 / 109 / 106 / 100 %), so
// a slow machine still gets this many tokens, in multiples of the attention's tile.
constexpr double kUndisturbedMs = 600;
constexpr int kTile = 64;

// What is left of the pass while prefill is given out.
struct Left {
  int tokens = 0;
  double ms = 0;

  void give(StepRow& row, int tokens_given) {
    row.tokens += tokens_given;
    tokens -= tokens_given;
    ms -= tokens_given * row.token_ms;
  }
  // Tokens of `row` that still fit, at most `most`.
  int fitting(const StepRow& row, double most) const {
    most = std::min(
        {most, static_cast<double>(tokens), static_cast<double>(row.pending - row.tokens)});
    if (row.token_ms > 0) most = std::min(most, ms / row.token_ms);
    return static_cast<int>(std::max(0.0, most));
  }
};

bool shorter(const StepRow* a, const StepRow* b) {
  return a->pending != b->pending ? a->pending < b->pending : a->order < b->order;
}

// Milliseconds for prefill when nobody decodes.
double undisturbed_ms(const std::vector<StepRow*>& prompts, const StepRules& rules) {
  const StepRow& first = *prompts.front();
  if (first.token_ms <= 0) return std::numeric_limits<double>::infinity();
  const double whole = std::max({rules.room.ms, kUndisturbedMs, kTile * first.token_ms});
  const double ending = first.pending * first.token_ms / (1 - kOldestShare);
  if (ending > whole || prompts.size() == 1) return whole;
  return std::max(rules.room.ms, ending);
}

void fill_gaps(std::span<StepRow> rows, Left& left) {
  int lowest = std::numeric_limits<int>::max();
  int highest = -1;
  for (const StepRow& row : rows) {
    if (!row.decoding) continue;
    lowest = std::min(lowest, row.slot);
    highest = std::max(highest, row.slot);
  }
  std::vector<StepRow*> gaps;
  double ms = 0;
  for (StepRow& row : rows) {
    if (row.decoding || row.slot < lowest || row.slot > highest) continue;
    gaps.push_back(&row);
    ms += row.token_ms;
  }
  if (static_cast<int>(gaps.size()) > left.tokens / 2 || ms > left.ms / 2) return;
  for (StepRow* row : gaps) left.give(*row, 1);
}

}  // namespace

double divide_step(std::span<StepRow> rows, const StepRules& rules) {
  std::vector<StepRow*> prompts;
  Left left{.tokens = rules.step_tokens_max, .ms = rules.room.ms};
  for (StepRow& row : rows) {
    row.tokens = row.decoding ? 1 : 0;
    left.tokens -= row.tokens;
    if (!row.decoding) prompts.push_back(&row);
  }
  CHECK(left.tokens >= 0);
  if (prompts.empty()) return 0;
  const bool decoding = prompts.size() < rows.size();
  if (decoding && rules.decode_alone) return rules.oldest_credit;
  std::sort(prompts.begin(), prompts.end(), shorter);
  left.tokens = std::min(left.tokens, rules.room.tokens);
  if (!decoding) left.ms = undisturbed_ms(prompts, rules);

  StepRow& oldest = **std::min_element(prompts.begin(), prompts.end(),
                                       [](auto* a, auto* b) { return a->order < b->order; });
  double whole = left.tokens;
  if (oldest.token_ms > 0) whole = std::clamp(left.ms / oldest.token_ms, 1.0, std::max(1.0, whole));
  double credit = std::min(rules.oldest_credit + kOldestShare * whole, whole);

  fill_gaps(rows, left);
  const StepRow* shared = nullptr;  // the oldest, if it has had its share
  // When only one prompt may be in a pass, its quarter is every fourth pass.
  const double share = rules.prefill_batch == 1 && credit < whole ? 0 : credit;
  if (const int tokens = left.fitting(oldest, share); tokens > 0) {
    left.give(oldest, tokens);
    shared = &oldest;
  }
  int chosen = shared != nullptr ? 1 : 0;
  for (StepRow* row : prompts) {
    if (row != shared && chosen == rules.prefill_batch) continue;
    int tokens = left.fitting(*row, row->pending);
    const int chunk = row->tokens + tokens;
    const int multiple = !decoding && chunk >= kTile ? kTile : kChunkMultiple;
    if (chunk >= 2 * multiple && chunk < row->pending) tokens -= chunk % multiple;
    if (tokens <= 0) continue;
    left.give(*row, tokens);
    chosen += row != shared ? 1 : 0;
  }
  const bool none =
      std::all_of(prompts.begin(), prompts.end(), [](auto* p) { return p->tokens == 0; });
  if (none && left.tokens > 0) (credit >= 1 ? oldest : *prompts.front()).tokens = 1;
  return std::max(0.0, credit - oldest.tokens);
}

void divide_whole(std::span<StepRow> rows, int step_tokens_max) {
  std::vector<StepRow*> oldest_first;
  for (StepRow& row : rows) oldest_first.push_back(&row);
  std::ranges::sort(oldest_first, {}, &StepRow::order);
  int left = step_tokens_max;
  for (StepRow* row : oldest_first) {
    if (row->pending > left) continue;
    row->tokens = row->pending;
    left -= row->tokens;
  }
}

}  // namespace flotilla::batch
