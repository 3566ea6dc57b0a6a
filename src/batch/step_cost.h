#pragma once

#include <array>
#include <span>

#include "base/clock.h"

namespace flotilla::batch {

// Median of the last observations: one hiccup of the machine does not move it, a lasting change has
// moved it after half a window.
class RecentMedian {
 public:
  bool empty() const { return count_ == 0; }
  int count() const { return count_; }
  void add(double value);
  void keep_newest(int count);
  double get() const;  // not empty

 private:
  static constexpr int kWindow = 7;

  std::array<double, kWindow> values_{};
  int count_ = 0;
  int next_ = 0;
};

// Prompt tokens of one sequence in one pass: cells [pos, pos + tokens).
struct PrefillRun {
  int pos = 0;
  int tokens = 0;
};

// What prefill may add to a pass.
struct PrefillRoom {
  double ms = 0;
  int tokens = 0;
};

// Learns from measured passes what a pass costs, so that chunk sizes need no knob:
//   took = decode(decoding sequences) + sum of prefill tokens x cost at their position.
// Decode cost comes from passes without prefill alone, per number of sequences; token cost from
// what the others took beyond that, per octave of the position (attention grows with it). Errors of
// the first only shift the second: chunks settle where the whole pass takes the target. Growth is
// bounded: a chunk is at most twice what a measured pass has shown to fit.
class StepCost {
 public:
  StepCost(Duration target, int step_tokens_max);

  // A pass that is not to be counted (aborted, failed) is not reported.
  void observe(int decoding, std::span<const PrefillRun> prefill, Duration took);
  // A pass without prefill that also computed `drafted` tokens, one or more.
  void observe_drafts(int decoding, int drafted, Duration took);

  // Milliseconds; 0 = not known.
  double decode_ms(int decoding) const;
  double token_ms(int pos) const;
  double prefill_ms(PrefillRun run) const;
  // What a drafted token adds beside `decoding` sequences.
  double draft_ms(int decoding) const;
  // Wanted length of a pass that does both.
  double target_ms(int decoding) const;

  // The decode cost of this many sequences is hardly known or old: the next pass should hold no
  // prefill.
  bool wants_decode_alone(int decoding) const;
  // What prefill may add beside `decoding` sequences; without any, `ms` is the target's whole.
  PrefillRoom room(int decoding) const;

 private:
  static constexpr int kDecodeBuckets = 12;
  static constexpr int kDepthBuckets = 12;

  struct DecodeBucket {
    RecentMedian ms;
    int mixed_since = 0;      // passes with prefill since the last without
    bool confirming = false;  // the last measurement contradicted the others: one more
    double announced = 0;     // what the others know of; beyond kNews from it they are old too
    int drafted_since = 0;    // as mixed_since, of passes with drafts
    RecentMedian draft_ms;    // each drafted token's
    int plain_since = 0;      // passes without drafts since the last with
  };

  void observe_decode(DecodeBucket& bucket, double ms);
  int observe_prefill(std::span<const PrefillRun> prefill, double ms);

  double target_ms_;  // 0 = by decode cost
  int step_tokens_max_;
  std::array<DecodeBucket, kDecodeBuckets> decode_;
  std::array<RecentMedian, kDepthBuckets> token_;
  int settled_ = 0;        // sequences of the last pass, if it held no prefill
  int proven_tokens_ = 0;  // prefill tokens that fitted a mixed pass; 0 = none yet
};

}  // namespace flotilla::batch
