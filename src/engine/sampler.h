#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/grammar.h"
#include "engine/logit_row.h"

namespace flotilla::engine {

// What a request asks of the choice of tokens. Defaults are OpenAI's: the model's own distribution.
struct SamplingParams {
  float temperature = 1.0F;         // 0 = greedy
  float top_p = 1.0F;               // 1 = off
  int top_k = 0;                    // 0 = off
  float min_p = 0.0F;               // 0 = off
  float presence_penalty = 0.0F;    // off every token that the answer has
  float frequency_penalty = 0.0F;   // off it, each time that the answer has it
  float repetition_penalty = 1.0F;  // 1 = off; over prompt and answer
  std::vector<std::pair<Token, float>> logit_bias = {};
  std::uint64_t seed = 0;
  bool ignore_eos = false;
};

// A uniform number in [0, 1) that depends on (seed, position) alone, not on what was drawn before:
// a resumed sequence draws what the lost one would have. (Philox 4x32-10.)
double counter_uniform(std::uint64_t seed, std::uint64_t position);

constexpr Token kNoToken = -1;

// How likely a token was, by the model alone: before bias, penalties, temperature and filters.
struct TokenLogprob {
  Token token = kNoToken;
  float logprob = 0;
};
struct ChosenLogprob {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // most likely first
};
// `chosen` among `logits` [vocabulary], and the `top` most likely tokens.
ChosenLogprob logprob_of(std::span<const float> logits, Token chosen, int top);

// Chooses one sequence's tokens. One thread at a time.
//
// In this order, each on what the one before left (vLLM's, with OpenAI's meaning of temperature):
// logit_bias; ignore_eos; repetition_penalty (prompt and answer), frequency_penalty and
// presence_penalty (answer); temperature; min_p; top_k; top_p; one draw. Equal logits go by the
// lower id, so every filter keeps an exact number of tokens.
//
// A grammar is asked for the chosen token alone. One that it refuses is taken out and the choice is
// made anew, which leaves the others' shares as they were; only after several such tries are all
// tokens looked at.
class Sampler {
 public:
  // `end_tokens`: never chosen under ignore_eos. `grammar` may be null.
  Sampler(SamplingParams params, std::vector<Token> end_tokens,
          std::unique_ptr<Grammar> grammar = nullptr);

  // The prompt, then each token of the answer, in order; penalties count them. Tokens that the
  // grammar has accepted already are `given`.
  void accept_prompt(std::span<const Token> tokens);
  void accept_given(Token token);
  void accept(Token token);
  // Whether the grammar, if there is one, lets it come next.
  bool allows(Token token) const { return grammar_ == nullptr || grammar_->allows(token); }
  // The token at answer position `position` (0-based) by `logits` [vocabulary]; kNoToken: the
  // grammar allows none. Never fails: logits that are not numbers count as impossible.
  Token sample(std::span<const float> logits, std::uint64_t position);

 private:
  void edit(LogitRow& row) const;
  Token choose(LogitRow& row, double point) const;
  Cut filter(LogitRow& row, float sharpness) const;

  const SamplingParams params_;
  const std::vector<Token> end_tokens_;
  const bool penalties_;
  std::unique_ptr<Grammar> grammar_;
  std::unordered_map<Token, int> seen_;  // token -> times in the answer; with penalties only
};

}  // namespace flotilla::engine
