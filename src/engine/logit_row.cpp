#include "engine/logit_row.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>

#include "base/check.h"

// Functions that run over whole rows are compiled for each level of x86-64, chosen once at start.
// (Not under sanitizers: the choice runs before their own start.)
#if defined(__x86_64__) && defined(__ELF__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FLOTILLA_ROW_PASS [[gnu::target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")]]
#else
#define FLOTILLA_ROW_PASS
#endif
#define FLOTILLA_INLINE [[gnu::always_inline]] inline

namespace flotilla::engine {
namespace {

constexpr int kBlock = 64;
constexpr int kLanes = 8;  // 16 in one type: g++ 12 compares them one by one
constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr float kHighest = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Vector types of the compiler: explicit lanes give the same sums on every machine, and no
// optimisation level has to find the vectors.
using Floats [[gnu::vector_size(kLanes * sizeof(float))]] = float;
using Ints [[gnu::vector_size(kLanes * sizeof(float))]] = std::int32_t;
using Words [[gnu::vector_size(kLanes * sizeof(float))]] = std::uint32_t;

FLOTILLA_INLINE void load(const float* from, Floats& to) { std::memcpy(&to, from, sizeof(to)); }
FLOTILLA_INLINE void store(const Floats& from, float* to) { std::memcpy(to, &from, sizeof(from)); }

FLOTILLA_INLINE float largest_lane(const Floats& lanes) {
  float largest = lanes[0];
  for (int lane = 1; lane < kLanes; ++lane) largest = largest < lanes[lane] ? lanes[lane] : largest;
  return largest;
}

FLOTILLA_INLINE float sum_lanes(const Floats& lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// e^x for x <= 0, with a relative error below (2 + |x|) 1e-7; 0 below e^-87, where floats end.
// x = (n + f) ln 2 with |f| <= 1/2: 2^f by its Taylor polynomial, 2^n by the exponent's bits.
FLOTILLA_INLINE void exp_lanes(const Floats& x, Floats& result) {
  const Ints alive = x > -87.0F;
  const Floats z = (alive ? x : Floats{} - 87.0F) * 1.44269504F;
  const Floats magic = Floats{} + 12582912.0F;  // 1.5 x 2^23: adding it rounds to a whole number
  const Floats shifted = z + magic;
  const Floats f = (z - (shifted - magic)) * 0.693147181F;
  Floats p = Floats{} + 1.0F / 720;
  p = p * f + 1.0F / 120;
  p = p * f + 1.0F / 24;
  p = p * f + 1.0F / 6;
  p = p * f + 0.5F;
  p = p * f + 1.0F;
  p = p * f + 1.0F;
  Words whole;
  std::memcpy(&whole, &shifted, sizeof(whole));
  Words scaled;
  std::memcpy(&scaled, &p, sizeof(scaled));
  scaled += whole << 23;  // the magic's own bits leave at the top
  std::memcpy(&result, &scaled, sizeof(result));
  result = alive ? result : Floats{};
}

struct Weighing {
  float largest;
  float sharpness;
  Cut cut;
};

// Weights of 8 logits from id `first` on, 0 for those that the cut removes.
FLOTILLA_INLINE void weigh(const float* logits, Token first, const Weighing& how, Floats& weights) {
  Floats x;
  load(logits, x);
  exp_lanes((x - how.largest) * how.sharpness, weights);
  const Ints id = Ints{0, 1, 2, 3, 4, 5, 6, 7} + first;
  const Ints kept = (x > how.cut.value) | ((x == how.cut.value) & (id <= how.cut.tie));
  weights = kept ? weights : Floats{};
}

FLOTILLA_ROW_PASS void copy_cleaned(const float* from, float* to, int size) {
  int i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Floats x;
    load(from + i, x);
    x = x == x ? x : Floats{} + kLowest;
    x = x < kLowest ? Floats{} + kLowest : x;
    x = x > kHighest ? Floats{} + kHighest : x;
    store(x, to + i);
  }
  for (; i < size; ++i) {
    to[i] = from[i] == from[i] ? std::clamp(from[i], kLowest, kHighest) : kLowest;
  }
}

FLOTILLA_ROW_PASS void find_block_largest(const float* values, float* largest, std::size_t blocks) {
  for (std::size_t block = 0; block < blocks; ++block) {
    Floats a;
    load(values + block * kBlock, a);
    for (int part = kLanes; part < kBlock; part += kLanes) {
      Floats b;
      load(values + block * kBlock + part, b);
      a = a < b ? b : a;
    }
    largest[block] = largest_lane(a);
  }
}

// Weights of all blocks that the cut does not remove as a whole, and their sums.
FLOTILLA_ROW_PASS void weigh_row(const float* values, const float* block_largest, int blocks,
                                 const Weighing& how, float* weights, float* block_weight) {
  for (int block = 0; block < blocks; ++block) {
    block_weight[block] = 0;
    if (block_largest[block] < how.cut.value) continue;
    Floats sum = {};
    for (int part = 0; part < kBlock; part += kLanes) {
      const int at = block * kBlock + part;
      Floats lanes;
      weigh(values + at, at, how, lanes);
      store(lanes, weights + at);
      sum += lanes;
    }
    block_weight[block] = sum_lanes(sum);
  }
}

constexpr int kSteps = 8;

// The weight above each of falling thresholds. Sums of floats stay short, of doubles long.
FLOTILLA_ROW_PASS void sum_above(const float* values, const float* weights,
                                 const float* block_largest, int blocks, const float* thresholds,
                                 double* sums) {
  for (int step = 0; step < kSteps; ++step) sums[step] = 0;
  constexpr int kGroup = 8;
  for (int group = 0; group < blocks; group += kGroup) {
    Floats lanes[kSteps] = {};
    const int end = group + kGroup < blocks ? group + kGroup : blocks;
    for (int block = group; block < end; ++block) {
      if (block_largest[block] <= thresholds[kSteps - 1]) continue;
      for (int at = block * kBlock; at < (block + 1) * kBlock; at += kLanes) {
        Floats x;
        Floats weight;
        load(values + at, x);
        load(weights + at, weight);
        for (int step = 0; step < kSteps; ++step) {
          lanes[step] += x > thresholds[step] ? weight : Floats{};
        }
      }
    }
    for (int step = 0; step < kSteps; ++step) sums[step] += sum_lanes(lanes[step]);
  }
}

}  // namespace

void LogitRow::assign(std::span<const float> logits) {
  CHECK(!logits.empty());
  size_ = static_cast<int>(logits.size());
  const std::size_t blocks = (logits.size() + kBlock - 1) / kBlock;
  values_.resize(blocks * kBlock);
  block_largest_.resize(blocks);
  block_weight_.resize(blocks);
  weights_.resize(blocks * kBlock);
  copy_cleaned(logits.data(), values_.data(), size_);
  std::fill(values_.begin() + size_, values_.end(), kLowest);
}

void LogitRow::set(Token id, float logit) {
  CHECK(id >= 0 && id < size_);
  values_[static_cast<std::size_t>(id)] =
      logit == logit ? std::clamp(logit, kLowest, kHighest) : kLowest;
}

void LogitRow::measure() {
  find_block_largest(values_.data(), block_largest_.data(), block_largest_.size());
  largest_ = *std::ranges::max_element(block_largest_);
}

Token LogitRow::argmax() const {
  const auto block = std::ranges::find(block_largest_, largest_) - block_largest_.begin();
  return static_cast<Token>(std::find(values_.begin() + block * kBlock, values_.end(), largest_) -
                            values_.begin());
}

void LogitRow::gather(Cut cut) {
  candidates_.clear();
  for (std::size_t block = 0; block < block_largest_.size(); ++block) {
    if (block_largest_[block] < cut.value) continue;
    const auto first = static_cast<Token>(block * kBlock);
    const Token end = std::min(first + kBlock, size_);
    for (Token id = first; id < end; ++id) {
      const float logit = values_[static_cast<std::size_t>(id)];
      if (cut.keeps(logit, id)) candidates_.push_back({logit, id, 0});
    }
  }
}

Cut LogitRow::keep_largest(Cut cut, int count) {
  if (count >= size_) return cut;
  // At least `count` logits are as large as the count-th largest of the blocks' largest ones, so
  // only those above it need a look. With a count near the number of blocks it excludes little.
  Cut bound = cut;
  const auto wanted = static_cast<std::size_t>(count);
  if (wanted <= block_largest_.size()) {
    selection_ = block_largest_;
    std::ranges::nth_element(selection_, selection_.begin() + count - 1, std::greater<>());
    if (selection_[wanted - 1] > cut.value) bound = {selection_[wanted - 1], size_};
  }
  gather(bound);
  if (candidates_.size() <= wanted) return bound;
  std::ranges::nth_element(candidates_, candidates_.begin() + count - 1, before);
  return {candidates_[wanted - 1].logit, candidates_[wanted - 1].id};
}

double LogitRow::log_total() { return largest_ + std::log(weigh({-kInfinity, size_}, 1)); }

std::vector<Token> LogitRow::largest_ids(int count) {
  if (count <= 0) return {};
  gather(keep_largest({-kInfinity, size_}, count));
  std::ranges::sort(candidates_, before);
  std::vector<Token> ids;
  for (const Candidate& candidate : candidates_) ids.push_back(candidate.id);
  return ids;
}

double LogitRow::weigh(Cut cut, float sharpness) {
  weigh_row(values_.data(), block_largest_.data(), static_cast<int>(block_largest_.size()),
            {largest_, sharpness, cut}, weights_.data(), block_weight_.data());
  double total = 0;
  for (const float weight : block_weight_) total += weight;
  return total;
}

// Where the falling weight reaches `wanted`: in the band of logits (low, high], with `above` of it
// over the band. Each round looks at all logits once and narrows the band to an eighth.
LogitRow::Band LogitRow::find_band(Cut cut, float sharpness, double wanted) const {
  constexpr float kReach = 16;  // e^-16: what lies lower is seldom wanted
  Band band{std::max(largest_ - kReach / sharpness, cut.value), largest_, 0};
  for (int round = 0; round < 3; ++round) {
    float thresholds[kSteps];
    double sums[kSteps];
    const float width = band.high - band.low;
    for (int step = 0; step < kSteps; ++step) {
      thresholds[step] = band.high - width * static_cast<float>(step + 1) / kSteps;
    }
    thresholds[kSteps - 1] = band.low;
    sum_above(values_.data(), weights_.data(), block_largest_.data(),
              static_cast<int>(block_largest_.size()), thresholds, sums);
    const auto step =
        std::find_if(sums, sums + kSteps, [&](double s) { return s >= wanted; }) - sums;
    if (step > 0) {
      band.high = thresholds[step - 1];
      band.above = sums[step - 1];
    }
    if (step == kSteps) {
      band.low = cut.value;
      break;
    }
    band.low = thresholds[step];
  }
  return band;
}

Cut LogitRow::keep_share(Cut cut, float share, float sharpness) {
  double wanted = weigh(cut, sharpness) * share;
  const Band band = find_band(cut, sharpness, wanted);
  wanted -= band.above;
  gather(band.low > cut.value ? Cut{band.low, -1} : cut);  // -1: none of exactly `low`
  std::erase_if(candidates_, [&](const Candidate& c) { return c.logit > band.high; });
  if (candidates_.empty()) return cut;  // a share of all but rounding errors
  for (Candidate& c : candidates_) c.weight = weights_[static_cast<std::size_t>(c.id)];

  // The token that reaches `wanted`, by halving: only the side that holds it is looked at again.
  auto low = candidates_.begin();
  auto high = candidates_.end();
  while (high - low > 32) {
    const auto middle = low + (high - low) / 2;
    Candidate pivots[] = {*low, *middle, *(high - 1)};
    std::ranges::sort(pivots, before);
    const Candidate pivot = pivots[1];
    const auto border =
        std::partition(low, high, [&](const Candidate& c) { return before(c, pivot); });
    double weight = 0;
    for (auto it = low; it != border; ++it) weight += it->weight;
    if (weight >= wanted) {
      high = border;
    } else {
      wanted -= weight;
      low = border;
    }
  }
  std::sort(low, high, before);
  while (high - low > 1 && low->weight < wanted) {
    wanted -= low->weight;
    ++low;
  }
  return {low->logit, low->id};
}

Token LogitRow::draw(Cut cut, float sharpness, double point) {
  double left = point * weigh(cut, sharpness);
  std::size_t block = 0;
  std::size_t last = 0;  // block with any weight, for when rounding leaves a rest
  for (; block < block_weight_.size(); ++block) {
    if (block_weight_[block] > 0) last = block;
    if (left < block_weight_[block]) break;
    left -= block_weight_[block];
  }
  if (block == block_weight_.size()) block = last;
  const auto first = static_cast<Token>(block * kBlock);
  Token chosen = first;
  for (Token id = first; id < first + kBlock; ++id) {
    const float weight = weights_[static_cast<std::size_t>(id)];
    if (weight <= 0) continue;
    chosen = id;
    if (left < weight) break;
    left -= weight;
  }
  return chosen;
}

}  // namespace flotilla::engine
