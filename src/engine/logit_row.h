#pragma once

#include <span>
#include <vector>

#include "engine/engine.h"

namespace flotilla::engine {

// Which tokens remain: those above `value`, and those of exactly it up to id `tie`. In the order
// "larger logit first, then lower id" this is everything up to one token.
struct Cut {
  float value;
  Token tie;

  bool keeps(float logit, Token id) const { return logit > value || (logit == value && id <= tie); }
};

// One row of logits that a token is chosen from: a copy, cleaned, with the passes over it that a
// choice is made of. Each pass reads blocks of 64 logits in 8 lanes and skips the blocks that hold
// nothing above the cut. A token's weight is e^((logit - largest) * sharpness), so the largest
// is 1. Bits do not depend on the machine's vector width, but for fused multiply-adds.
class LogitRow {
 public:
  // NaN becomes the lowest float, infinities the ends of the range.
  void assign(std::span<const float> logits);

  float get(Token id) const { return values_[static_cast<std::size_t>(id)]; }
  void set(Token id, float logit);
  std::span<float> editable() { return {values_.data(), static_cast<std::size_t>(size_)}; }
  int size() const { return size_; }

  // Everything below is valid after this, until the next set().
  void measure();
  float largest() const { return largest_; }
  Token argmax() const;
  // The logarithm of the sum of e^logit.
  double log_total();
  // The ids of the `count` largest logits, largest first.
  std::vector<Token> largest_ids(int count);

  // The cut that keeps `count` tokens of those that `cut` keeps.
  Cut keep_largest(Cut cut, int count);
  // The cut that keeps the fewest, largest tokens that hold `share` of the weight that `cut` keeps.
  Cut keep_share(Cut cut, float share, float sharpness);
  // The token at `point` in [0, 1) of the weight that `cut` keeps, lined up by id.
  Token draw(Cut cut, float sharpness, double point);

 private:
  struct Candidate {
    float logit;
    Token id;
    float weight;
  };
  static bool before(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }

  struct Band {
    float low;
    float high;
    double above;
  };

  double weigh(Cut cut, float sharpness);
  Band find_band(Cut cut, float sharpness, double wanted) const;
  void gather(Cut cut);

  int size_ = 0;
  std::vector<float> values_;  // padded to whole blocks with the lowest float
  std::vector<float> block_largest_;
  std::vector<float> weights_;  // by weigh(); only of blocks that have any
  std::vector<float> block_weight_;
  std::vector<float> selection_;
  std::vector<Candidate> candidates_;
  float largest_ = 0;
};

}  // namespace flotilla::engine
