#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/test_model.h"

namespace flotilla::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_logits(Random& random, int size, double spread) {
  std::vector<float> logits(static_cast<std::size_t>(size));
  for (float& logit : logits) {
    // About normal, with a coarse grid now and then, so that there are ties.
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += random.uniform() - 0.5;
    logit = static_cast<float>(sum * spread);
    if (random.chance(0.3)) logit = std::round(logit);
  }
  return logits;
}

struct History {
  std::vector<Token> prompt;
  std::vector<Token> answer;
};

// The naive sampler: doubles, a full sort, one step after the other.
std::vector<double> distribution(const std::vector<float>& logits, const SamplingParams& params,
                                 const History& history, const std::vector<Token>& ends) {
  std::vector<double> x(logits.begin(), logits.end());
  const auto n = static_cast<Token>(x.size());
  for (const auto& [token, bias] : params.logit_bias) {
    if (token < n) x[token] += bias;
  }
  for (Token token = 0; token < n; ++token) {
    const auto in_answer = std::ranges::count(history.answer, token);
    if (in_answer + std::ranges::count(history.prompt, token) > 0) {
      x[token] = x[token] > 0 ? x[token] / params.repetition_penalty
                              : x[token] * params.repetition_penalty;
    }
    x[token] -= params.frequency_penalty * static_cast<double>(in_answer);
    if (in_answer > 0) x[token] -= params.presence_penalty;
  }
  if (params.ignore_eos) {
    for (const Token token : ends) x[token] = -1e30;
  }
  std::vector<Token> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](Token a, Token b) { return x[a] > x[b]; });
  std::vector<double> weights(x.size());
  for (Token token = 0; token < n; ++token) {
    weights[token] = std::exp((x[token] - x[order[0]]) / params.temperature);
  }
  std::size_t kept = order.size();
  while (weights[order[kept - 1]] < static_cast<double>(params.min_p)) --kept;
  if (params.top_k > 0) kept = std::min<std::size_t>(kept, params.top_k);
  double total = 0;
  for (std::size_t i = 0; i < kept; ++i) total += weights[order[i]];
  double held = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    held += weights[order[i]];
    if (held >= total * static_cast<double>(params.top_p)) kept = i + 1;
  }
  std::vector<double> result(x.size());
  for (std::size_t i = 0; i < kept; ++i) result[order[i]] = weights[order[i]] / held;
  return result;
}

void expect_same_distribution(const std::vector<float>& logits, SamplingParams params,
                              const History& history, const std::vector<Token>& ends, int draws) {
  const std::vector<double> expected = distribution(logits, params, history, ends);
  Sampler sampler(params, ends);
  sampler.accept_prompt(history.prompt);
  for (const Token token : history.answer) sampler.accept(token);
  std::vector<int> counts(logits.size());
  for (int i = 0; i < draws; ++i) ++counts[sampler.sample(logits, i)];

  // Chi-square over the tokens that are expected often enough, and all others together.
  double chi_square = 0;
  int freedom = 0;
  double rest_expected = 0;
  double rest_seen = 0;
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const double wanted = expected[token] * draws;
    ASSERT_TRUE(expected[token] > 0 || counts[token] == 0) << "token " << token << " was cut";
    if (wanted < 8) {
      rest_expected += wanted;
      rest_seen += counts[token];
      continue;
    }
    chi_square += std::pow(counts[token] - wanted, 2) / wanted;
    ++freedom;
  }
  if (rest_expected >= 8) {
    chi_square += std::pow(rest_seen - rest_expected, 2) / rest_expected;
    ++freedom;
  }
  // Mean and variance of chi-square: beyond 4.5 sigma something is wrong.
  EXPECT_LT(chi_square, freedom + 4.5 * std::sqrt(2.0 * freedom) + 10)
      << "temperature " << params.temperature << " top_k " << params.top_k << " top_p "
      << params.top_p << " min_p " << params.min_p;
}

TEST(Sampler, DrawsFromTheDistributionThatItsParametersDescribe) {
  const std::uint64_t seed = 20'260'101;
  Random random(seed);
  for (int round = 0; round < (kSanitized ? 15 : 60); ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    const int size = 5 + static_cast<int>(random.below(300));
    const std::vector<float> logits = random_logits(random, size, 2 + 10 * random.uniform());
    SamplingParams params;
    params.seed = random.next();
    params.temperature = static_cast<float>(0.3 + 1.7 * random.uniform());
    if (random.chance(0.5)) params.top_k = 1 + static_cast<int>(random.below(size));
    if (random.chance(0.5)) params.top_p = static_cast<float>(random.uniform());
    if (random.chance(0.3)) params.min_p = static_cast<float>(0.3 * random.uniform());
    if (random.chance(0.3)) params.presence_penalty = 0.7F;
    if (random.chance(0.3)) params.frequency_penalty = 0.2F;
    if (random.chance(0.3)) params.repetition_penalty = 1.3F;
    if (random.chance(0.3)) params.logit_bias = {{1, 2.5F}, {3, -4.0F}, {size + 5, 100.0F}};
    params.ignore_eos = random.chance(0.5);
    History history;
    for (int i = 0; i < 20; ++i) {
      auto& tokens = random.chance(0.5) ? history.prompt : history.answer;
      tokens.push_back(static_cast<Token>(random.below(size)));
    }
    expect_same_distribution(logits, params, history, {0, 2}, 4000);
  }
}

// The set of tokens that can come out, at the size of a real vocabulary.
TEST(Sampler, FiltersKeepExactlyTheTokensOfAFullSort) {
  const std::uint64_t seed = 99;
  Random random(seed);
  std::vector<SamplingParams> cases(7);
  cases[0].top_k = 40;
  cases[1].top_k = 1;
  cases[2].top_p = 0.9F;
  cases[3].top_p = 0.999F;
  cases[3].temperature = 1.8F;
  cases[4].min_p = 0.05F;
  cases[5].top_k = 3000;
  cases[5].top_p = 0.7F;
  cases[6].top_p = 0.0F;
  for (const SamplingParams& params : cases) {
    const std::vector<float> logits = random_logits(random, 49'152, 9);
    const std::vector<double> expected = distribution(logits, params, {}, {});
    LogitRow row;
    row.assign(logits);
    row.measure();
    const float sharpness = 1 / params.temperature;
    Cut cut{-kInfinity, row.size()};
    if (params.min_p > 0) cut.value = row.largest() + std::log(params.min_p) / sharpness;
    if (params.top_k > 0) cut = row.keep_largest(cut, params.top_k);
    if (params.top_p < 1) cut = row.keep_share(cut, params.top_p, sharpness);
    std::ptrdiff_t kept = 0;
    double moved = 0;
    for (Token token = 0; token < row.size(); ++token) {
      const bool keeps = cut.keeps(logits[token], token);
      kept += keeps ? 1 : 0;
      if (keeps != (expected[token] > 0)) moved += 1;
    }
    const auto wanted = std::ranges::count_if(expected, [](double p) { return p > 0; });
    EXPECT_GT(kept, 0);
    // Sums of floats and of doubles may end a nucleus a few tokens apart, where tokens weigh 1e-6.
    EXPECT_LE(moved, params.top_p < 1 && wanted > 1000 ? 5 : 0)
        << "kept " << kept << " of " << wanted << ", top_k " << params.top_k << " top_p "
        << params.top_p;
  }
}

TEST(Sampler, ChoosesTheLowestOfEqualLogitsWhenGreedy) {
  std::vector<float> logits(1000, -1.0F);
  logits[700] = logits[333] = logits[335] = 4.0F;
  Sampler sampler({.temperature = 0}, {});
  EXPECT_EQ(sampler.sample(logits, 0), 333);
  Sampler one({.temperature = 1, .top_k = 1}, {});
  for (std::uint64_t i = 0; i < 50; ++i) EXPECT_EQ(one.sample(logits, i), 333);
  Sampler tiny({.temperature = 1e-30F}, {});
  EXPECT_EQ(tiny.sample(logits, 0), 333);
}

TEST(Sampler, NeverEndsUnderIgnoreEos) {
  std::vector<float> logits(100, 0.0F);
  logits[5] = 50;
  logits[6] = 40;
  Sampler ends({.temperature = 0}, {5, 6});
  EXPECT_EQ(ends.sample(logits, 0), 5);
  for (const float temperature : {0.0F, 1.0F, 100.0F}) {
    Sampler sampler({.temperature = temperature, .ignore_eos = true}, {5, 6, 4000});
    for (std::uint64_t i = 0; i < 300; ++i) {
      const Token token = sampler.sample(logits, i);
      ASSERT_TRUE(token != 5 && token != 6);
    }
  }
}

TEST(Sampler, BiasOfAHundredForcesOrForbids) {
  std::vector<float> logits(500, 0.0F);
  logits[10] = 20;
  SamplingParams params{.temperature = 1, .logit_bias = {{42, 100.0F}}};
  Sampler forced(params, {});
  params.logit_bias = {{10, -100.0F}};
  Sampler forbidden(params, {});
  for (std::uint64_t i = 0; i < 300; ++i) {
    EXPECT_EQ(forced.sample(logits, i), 42);
    EXPECT_NE(forbidden.sample(logits, i), 10);
  }
}

TEST(Sampler, DrawsDependOnSeedAndPositionAlone) {
  Random random(5);
  const std::vector<float> logits = random_logits(random, 5000, 8);
  Sampler first({.seed = 11}, {});
  std::vector<Token> tokens;
  for (std::uint64_t i = 0; i < 64; ++i) tokens.push_back(first.sample(logits, i));
  Sampler resumed({.seed = 11}, {});
  for (std::uint64_t i = 64; i-- > 0;) EXPECT_EQ(resumed.sample(logits, i), tokens[i]);
  Sampler other({.seed = 12}, {});
  int same = 0;
  for (std::uint64_t i = 0; i < 64; ++i) same += other.sample(logits, i) == tokens[i] ? 1 : 0;
  EXPECT_LT(same, 32);
}

TEST(Sampler, SurvivesLogitsThatAreNoNumbers) {
  std::vector<SamplingParams> cases(5);
  cases[0].temperature = 0;
  cases[2].top_k = 7;
  cases[3].top_p = 0.5F;
  cases[4].min_p = 0.1F;
  for (SamplingParams params : cases) {
    params.repetition_penalty = 1.5F;
    Sampler sampler(params, {});
    sampler.accept(3);
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      const Token all_bad = sampler.sample(std::vector<float>(130, bad), 1);
      EXPECT_TRUE(all_bad >= 0 && all_bad < 130);
      std::vector<float> logits(130, bad);
      logits[77] = 1.0F;
      const Token token = sampler.sample(logits, 1);
      EXPECT_TRUE(bad == kInfinity ? token >= 0 && token < 130 : token == 77) << token;
    }
  }
  Sampler odd({.temperature = kNan, .top_p = kNan, .min_p = kNan, .repetition_penalty = kNan}, {});
  odd.accept(0);
  EXPECT_EQ(odd.sample(std::vector<float>{1, 2, 3}, 0), 2);
  Sampler single({}, {});
  EXPECT_EQ(single.sample(std::vector<float>{-3}, 0), 0);
}

// The point of the range at which the draw goes from token 0 to token 1 gives its weight away.
TEST(LogitRow, WeighsLikeExp) {
  for (double x = -0.001; x > -12; x *= 1.7) {
    const auto logit = static_cast<float>(x);
    LogitRow row;
    row.assign(std::vector<float>{0, logit});
    row.measure();
    const double weight = std::exp(static_cast<double>(logit));
    const double border = 1 / (1 + weight);
    const double slack = weight * 2e-6 + 1.2e-7;  // exp, and the rounding of float sums
    EXPECT_EQ(row.draw({-kInfinity, 2}, 1, border - slack), 0) << x;
    EXPECT_EQ(row.draw({-kInfinity, 2}, 1, border + slack), 1) << x;
  }
}

}  // namespace
}  // namespace flotilla::engine
