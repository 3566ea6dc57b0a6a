#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace flotilla::engine {
namespace {

// Below this the largest logit takes all, and above the distribution is flat.
constexpr float kTemperatureMin = 1e-5F;
constexpr float kTemperatureMax = 100.0F;

constexpr float kNever = std::numeric_limits<float>::lowest();

// Choices that a grammar may refuse before all tokens are looked at: a look costs as much as some
// hundred choices, and a model that knows what is asked of it is seldom refused twice.
constexpr std::uint64_t kTries = 8;
// Between the seeds of a position's tries.
constexpr std::uint64_t kTryStride = 0x9E3779B97F4A7C15ULL;

// Shared by all samplers of a thread, so that one row stays in its cache.
LogitRow& shared_row() {
  static thread_local LogitRow row;
  return row;
}

}  // namespace

ChosenLogprob logprob_of(std::span<const float> logits, Token chosen, int top) {
  LogitRow& row = shared_row();
  row.assign(logits);
  row.measure();
  const double total = row.log_total();
  const auto of = [&](Token token) {
    return TokenLogprob{token, static_cast<float>(row.get(token) - total)};
  };
  ChosenLogprob out{.chosen = of(chosen), .top = {}};
  for (const Token token : row.largest_ids(top)) out.top.push_back(of(token));
  return out;
}

Sampler::Sampler(SamplingParams params, std::vector<Token> end_tokens,
                 std::unique_ptr<Grammar> grammar)
    : params_(std::move(params)),
      end_tokens_(std::move(end_tokens)),
      penalties_(params_.presence_penalty != 0 || params_.frequency_penalty != 0 ||
                 params_.repetition_penalty != 1),
      grammar_(std::move(grammar)) {}

void Sampler::accept_prompt(std::span<const Token> tokens) {
  if (params_.repetition_penalty == 1) return;
  for (const Token token : tokens) seen_.try_emplace(token);
}

void Sampler::accept_given(Token token) {
  if (penalties_) ++seen_[token];
}

void Sampler::accept(Token token) {
  accept_given(token);
  if (grammar_) grammar_->accept(token);
}

void Sampler::edit(LogitRow& row) const {
  const auto known = [&](Token token) { return token >= 0 && token < row.size(); };
  for (const auto& [token, bias] : params_.logit_bias) {
    if (known(token)) row.set(token, row.get(token) + bias);
  }
  for (const auto& [token, in_answer] : seen_) {
    if (!known(token)) continue;
    const float repetition = params_.repetition_penalty;
    float logit = row.get(token);
    logit = logit > 0 ? logit / repetition : logit * repetition;
    logit -= params_.frequency_penalty * static_cast<float>(in_answer);
    if (in_answer > 0) logit -= params_.presence_penalty;
    row.set(token, logit);
  }
  if (!params_.ignore_eos) return;
  for (const Token token : end_tokens_) {
    if (known(token)) row.set(token, kNever);
  }
}

Cut Sampler::filter(LogitRow& row, float sharpness) const {
  Cut cut{-std::numeric_limits<float>::infinity(), row.size()};
  if (params_.min_p > 0) {
    cut.value = row.largest() + std::log(std::min(params_.min_p, 1.0F)) / sharpness;
  }
  if (params_.top_k > 0) cut = row.keep_largest(cut, params_.top_k);
  if (params_.top_p < 1) cut = row.keep_share(cut, std::max(params_.top_p, 0.0F), sharpness);
  return cut;
}

Token Sampler::choose(LogitRow& row, double point) const {
  row.measure();
  const bool greedy = !(params_.temperature >= kTemperatureMin);
  if (greedy || row.largest() == kNever) return row.argmax();
  const float sharpness = 1 / std::min(params_.temperature, kTemperatureMax);
  return row.draw(filter(row, sharpness), sharpness, point);
}

Token Sampler::sample(std::span<const float> logits, std::uint64_t position) {
  LogitRow& row = shared_row();
  row.assign(logits);
  edit(row);
  for (std::uint64_t i = 0; i <= kTries; ++i) {
    if (i == kTries) grammar_->mask(row.editable());
    const Token token = choose(row, counter_uniform(params_.seed + i * kTryStride, position));
    if (!grammar_) return token;
    if (row.largest() == kNever) break;
    if (i == kTries || grammar_->allows(token)) return token;
    row.set(token, kNever);
  }
  return kNoToken;
}

}  // namespace flotilla::engine
