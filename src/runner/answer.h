#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "batch/stop_text.h"
#include "batch/whole_tokens.h"
#include "engine/engine.h"
#include "engine/sampler.h"
#include "runner/thought_limit.h"

namespace flotilla::runner {

enum class FinishReason { Stop, Length };
std::string_view to_string(FinishReason reason);  // OpenAI's word

// What one choice of a request asks for.
struct AnswerSpec {
  engine::SamplingParams sampling;
  std::vector<std::string> stops;
  int tokens_max = 1;                // of the answer, `given` included; the context allows them
  std::vector<engine::Token> given;  // tokens that an earlier replica had answered and shown
  // How many of the likeliest tokens to tell with each token; then text is shown in whole tokens.
  std::optional<int> top_logprobs = {};
  std::vector<engine::Token> shown_controls = {};  // control tokens that are written out
  ThoughtBudget thoughts = {};
};

// The text that `spec.given` has shown.
std::string given_text(const AnswerSpec& spec, const engine::Tokenizer& tokenizer);

// One sequence's answer: which token comes next, what of it may be shown, when it is over. Built
// from given tokens it stands exactly where it stood when the last of them had been taken. The
// scheduler thread's.
class Answer {
 public:
  // `grammar`: of this answer alone, the given tokens accepted; may be null.
  Answer(const AnswerSpec& spec, std::span<const engine::Token> prompt,
         std::shared_ptr<const engine::Tokenizer> tokenizer,
         const std::vector<engine::Token>& end_tokens,
         std::unique_ptr<engine::Grammar> grammar = nullptr);

  // Over before any further token: the given ones ended it.
  std::optional<FinishReason> finished() const { return finished_; }

  struct Step {
    engine::Token token = 0;
    bool counts = false;  // false: the token that ends the answer; it is no part of it
    std::string text;     // may be shown now
    // With the text: the tokens that it, and what is held back, came from; with top_logprobs
    // exactly those that it consists of.
    std::vector<engine::Token> tokens;
    std::vector<engine::ChosenLogprob> logprobs;
    std::string stop;  // the stop string that ended it
  };
  // The next token by these logits; finished() tells whether it is the last.
  Step next(std::span<const float> logits);

 private:
  std::string piece(engine::Token token) const;
  std::string advance(engine::Token token);
  std::string cut();
  void show(std::string released, Step& step);

  engine::Sampler sampler_;
  ThoughtLimit thoughts_;
  batch::StopText text_;
  std::shared_ptr<const engine::Tokenizer> tokenizer_;
  const int tokens_max_;
  const std::optional<int> top_logprobs_;
  const std::vector<engine::Token> shown_controls_;
  int tokens_ = 0;
  std::string last_bytes_;  // of the answer, at most a character's
  bool stopped_ = false;    // by a stop string
  std::string stop_;        // by this one
  std::optional<FinishReason> finished_;

  std::vector<engine::Token> unshown_;
  // With top_logprobs.
  std::vector<engine::ChosenLogprob> logprobs_;  // of `unshown_`
  batch::WholeTokens whole_;
  std::string ready_;     // may be shown, but ends inside a token
  std::size_t skip_ = 0;  // bytes to come that were shown before
};

}  // namespace flotilla::runner
