#include "batch/draft_plan.h"

namespace flotilla::batch {
namespace {

// Times and rates are measured on what was: a gain must be larger than their error.
constexpr double kMargin = 1.15;

}  // namespace

void divide_drafts(std::span<DraftRow> rows, const DraftRules& rules) {
  double answered = rules.decoding;  // tokens that the pass is expected to give
  double ms = rules.decode_ms;
  for (DraftRow& row : rows) row.tokens = 0;
  for (int drafted = 0; drafted < rules.tokens_max; ++drafted) {
    DraftRow* best = nullptr;
    double best_chance = 0;  // that all before it are right and it is
    for (DraftRow& row : rows) {
      if (row.tokens >= row.most) continue;
      double chance = 1;
      for (int i = 0; i <= row.tokens; ++i) chance *= row.rate;
      if (chance <= best_chance) continue;
      best = &row;
      best_chance = chance;
    }
    if (best == nullptr || best_chance * ms <= kMargin * answered * rules.draft_ms) return;
    ++best->tokens;
    answered += best_chance;
    ms += rules.draft_ms;
  }
}

}  // namespace flotilla::batch
