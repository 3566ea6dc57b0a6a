#include "batch/step_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace flotilla::batch {
namespace {

constexpr double kTargetMsMin = 50;
// A stream's gap may grow to three times its undisturbed one; the rest is the measurement's error.
constexpr double kTargetDecodes = 2.7;
// A wanted length below the decode cost would stop prefill altogether.
constexpr double kTargetDecodesMin = 1.25;
constexpr int kFirstChunk = 16;      // when nothing has been measured
constexpr int kMixedPassesMax = 32;  // decode cost is measured anew after as many: 1 % of the time
// One hiccup must not make the target: a cost counts after three measurements, and an old one after
// two that agree against it.
constexpr int kMeasurementsMin = 3;
constexpr int kDraftedPassesMax = 128;  // the same with drafts, whose passes are short
constexpr int kPlainPassesMax = 512;    // after as many a draft's cost is measured anew
constexpr int kMixedPassesMin = 8;      // before a pass that contradicts it says that it is old
constexpr double kNews = 0.25;          // an old cost that is off by more is measured twice at once
constexpr double kPartMin = 0.33;       // of a pass's prefill, to learn from it
constexpr double kOvershoot = 1.25;
constexpr double kOctave = 1.5;   // guess for the next octave's cost: between constant and linear
constexpr int kDepthFirst = 512;  // positions below cost the same

constexpr std::array<int, 12> kDecodeUpTo = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

std::size_t decode_bucket(int decoding) {
  const auto* it = std::lower_bound(kDecodeUpTo.begin(), kDecodeUpTo.end() - 1, decoding);
  return static_cast<std::size_t>(it - kDecodeUpTo.begin());
}

std::size_t depth_bucket(int pos, std::size_t buckets) {
  const auto octave = std::bit_width(static_cast<unsigned>(pos / kDepthFirst));
  return std::min(static_cast<std::size_t>(octave), buckets - 1);
}

}  // namespace

void RecentMedian::add(double value) {
  values_[static_cast<std::size_t>(next_)] = value;
  next_ = (next_ + 1) % kWindow;
  count_ = std::min(count_ + 1, kWindow);
}

void RecentMedian::keep_newest(int count) {
  count = std::min(count, count_);
  std::array<double, kWindow> kept{};
  for (int i = 0; i < count; ++i) {
    kept[static_cast<std::size_t>(i)] =
        values_[static_cast<std::size_t>((next_ + kWindow - count + i) % kWindow)];
  }
  values_ = kept;
  count_ = count;
  next_ = count % kWindow;
}

double RecentMedian::get() const {
  std::array<double, kWindow> sorted = values_;
  const auto middle = sorted.begin() + count_ / 2;
  std::nth_element(sorted.begin(), middle, sorted.begin() + count_);
  return *middle;
}

StepCost::StepCost(Duration target, int step_tokens_max)
    : target_ms_(to_ms(target)), step_tokens_max_(step_tokens_max) {}

double StepCost::decode_ms(int decoding) const {
  if (decoding == 0) return 0;
  const int wanted = static_cast<int>(decode_bucket(decoding));
  int best = -1;
  for (int i = 0; i < kDecodeBuckets; ++i) {
    if (decode_[static_cast<std::size_t>(i)].ms.empty()) continue;
    if (best < 0 || std::abs(i - wanted) < std::abs(best - wanted)) best = i;
  }
  return best < 0 ? 0 : decode_[static_cast<std::size_t>(best)].ms.get();
}

double StepCost::token_ms(int pos) const {
  const int wanted = static_cast<int>(depth_bucket(pos, kDepthBuckets));
  // Cost grows with depth: what is known of lower octaves is the least, were the own one's times of
  // a faster machine.
  double least = 0;
  int nearest = -1;
  for (int i = 0; i <= wanted; ++i) {
    const RecentMedian& known = token_[static_cast<std::size_t>(i)];
    if (known.empty()) continue;
    least = std::max(least, known.get());
    nearest = i;
  }
  if (nearest >= 0) return least * std::pow(kOctave, wanted - nearest);
  for (int i = wanted + 1; i < kDepthBuckets; ++i) {
    const RecentMedian& known = token_[static_cast<std::size_t>(i)];
    if (!known.empty()) return known.get();
  }
  // A token in company costs at most what a token alone does.
  return decode_ms(1);
}

double StepCost::prefill_ms(PrefillRun run) const {
  double ms = 0;
  while (run.tokens > 0) {
    int edge = kDepthFirst;  // where the cost changes next
    while (edge <= run.pos) edge *= 2;
    const int part = std::min(run.tokens, edge - run.pos);
    ms += part * token_ms(run.pos);
    run.pos += part;
    run.tokens -= part;
  }
  return ms;
}

double StepCost::draft_ms(int decoding) const {
  const RecentMedian& known = decode_[decode_bucket(decoding)].draft_ms;
  return known.count() < kMeasurementsMin ? 0 : known.get();
}

double StepCost::target_ms(int decoding) const {
  const double decode = decode_ms(std::max(decoding, 1));
  if (target_ms_ > 0) return std::max(target_ms_, kTargetDecodesMin * decode);
  return std::max(kTargetMsMin, kTargetDecodes * decode);
}

bool StepCost::wants_decode_alone(int decoding) const {
  if (decoding == 0) return false;
  const DecodeBucket& bucket = decode_[decode_bucket(decoding)];
  return bucket.ms.count() < kMeasurementsMin || bucket.mixed_since >= kMixedPassesMax ||
         bucket.drafted_since >= kDraftedPassesMax;
}

PrefillRoom StepCost::room(int decoding) const {
  PrefillRoom room{.ms = target_ms(decoding) - decode_ms(decoding), .tokens = step_tokens_max_};
  if (decoding == 0) return room;
  if (proven_tokens_ > 0) {
    room.tokens = std::min(room.tokens, 2 * proven_tokens_);
  } else if (token_ms(0) > 0) {
    room.ms /= 2;  // a guess from other kinds of passes
  } else {
    room.tokens = std::min(room.tokens, kFirstChunk);
  }
  return room;
}

void StepCost::observe_decode(DecodeBucket& bucket, double ms) {
  const bool old = !bucket.ms.empty() && (bucket.mixed_since >= kMixedPassesMax ||
                                          bucket.drafted_since >= kDraftedPassesMax);
  const bool news = old && std::abs(ms / bucket.ms.get() - 1) > kNews;
  if (old) bucket.ms.keep_newest(kMeasurementsMin - 1);
  bucket.ms.add(ms);
  bucket.confirming = news && !bucket.confirming;
  if (!bucket.confirming) bucket.mixed_since = bucket.drafted_since = 0;
  if (bucket.ms.count() < kMeasurementsMin) return;
  const double known = bucket.announced;
  const double now = bucket.ms.get();
  if (known > 0 && std::abs(now / known - 1) <= kNews) return;
  bucket.announced = now;
  if (known <= 0) return;
  // The machine has another speed than before.
  for (DecodeBucket& other : decode_) {
    if (&other != &bucket) other.mixed_since = kMixedPassesMax;
  }
}

// Spreads what the prefill of a pass took over its depths, in proportion to what was expected. A
// depth with a small part learns nothing: it would only take on the error of the others. Returns
// the tokens.
int StepCost::observe_prefill(std::span<const PrefillRun> prefill, double ms) {
  int tokens = 0;
  double expected = 0;
  struct Part {
    double each = 0;
    double ms = 0;
  };
  std::array<Part, kDepthBuckets> parts{};
  for (const PrefillRun& run : prefill) {
    Part& part = parts[depth_bucket(run.pos, kDepthBuckets)];
    part.each = token_ms(run.pos);
    part.ms += run.tokens * part.each;
    expected += run.tokens * part.each;
    tokens += run.tokens;
  }
  if (expected <= 0) {
    token_[depth_bucket(prefill.front().pos, kDepthBuckets)].add(ms / tokens);
    return tokens;
  }
  for (std::size_t i = 0; i < kDepthBuckets; ++i) {
    if (parts[i].ms < kPartMin * expected) continue;
    double ratio = ms / expected;
    if (!token_[i].empty()) ratio = std::clamp(ratio, 0.25, 4.0);
    token_[i].add(parts[i].each * ratio);
  }
  return tokens;
}

void StepCost::observe(int decoding, std::span<const PrefillRun> prefill, Duration took) {
  const double ms = to_ms(took);
  if (decoding > 0) {
    DecodeBucket& bucket = decode_[decode_bucket(decoding)];
    if (prefill.empty()) {
      if (++bucket.plain_since == kPlainPassesMax) {
        bucket.draft_ms.keep_newest(kMeasurementsMin - 1);
      }
      // The first after another kind of pass is slower than what users have undisturbed.
      if (std::exchange(settled_, decoding) == decoding || bucket.ms.empty()) {
        observe_decode(bucket, ms);
      }
      return;
    }
    ++bucket.mixed_since;
  }
  settled_ = 0;
  if (prefill.empty()) return;

  const double decode = decode_ms(decoding);
  const double extra = std::max(ms - decode, ms * 1e-3);
  const int tokens = observe_prefill(prefill, extra);
  if (decoding == 0) return;
  const double allowed = std::max(target_ms(decoding) - decode, 0.0);
  // A whole pass below the decode cost, or one token that does not fit beside it.
  DecodeBucket& bucket = decode_[decode_bucket(decoding)];
  const bool contradicts = ms < decode || (tokens == 1 && extra > kOvershoot * allowed);
  if (contradicts && bucket.mixed_since >= kMixedPassesMin) bucket.mixed_since = kMixedPassesMax;
  if (extra > kOvershoot * allowed) {
    proven_tokens_ = std::max(1, static_cast<int>(tokens * std::max(allowed / extra, 0.25)));
  } else {
    proven_tokens_ = std::max(proven_tokens_, tokens);
  }
}

void StepCost::observe_drafts(int decoding, int drafted, Duration took) {
  DecodeBucket& bucket = decode_[decode_bucket(decoding)];
  ++bucket.drafted_since;
  bucket.plain_since = 0;
  settled_ = 0;
  const double ms = to_ms(took);
  bucket.draft_ms.add(std::max(ms - decode_ms(decoding), ms * 1e-3) / drafted);
}

}  // namespace flotilla::batch
