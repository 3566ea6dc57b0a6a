#include "runner/answer.h"

#include <gtest/gtest.h>

#include "engine/fake_engine.h"

namespace flotilla::runner {
namespace {

// The synthetic model's tokens are bytes: a test chooses them by logits.
class AnswerTest : public testing::Test {
 protected:
  std::shared_ptr<const engine::Tokenizer> tokenizer_ =
      engine::make_fake_model({.per_step = {}, .per_token = {}}).tokenizer;
  std::vector<engine::Token> prompt_ = {'x'};

  Answer make(AnswerSpec spec) {
    spec.sampling.temperature = 0;
    return Answer(spec, prompt_, tokenizer_, {engine::kFakeTurnEnd});
  }
  Answer::Step next(Answer& answer, int token) {
    std::vector<float> logits(static_cast<std::size_t>(tokenizer_->vocabulary()), -10.0F);
    logits[static_cast<std::size_t>(token)] = 10;
    return answer.next(logits);
  }
  std::string feed(Answer& answer, std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) text += next(answer, static_cast<unsigned char>(byte)).text;
    return text;
  }
};

TEST_F(AnswerTest, TheTokenThatEndsItIsNoPartOfIt) {
  Answer answer = make({.sampling = {}, .stops = {}, .tokens_max = 10, .given = {}});
  EXPECT_TRUE(next(answer, 'a').counts);
  EXPECT_FALSE(answer.finished());
  const Answer::Step end = next(answer, engine::kFakeTurnEnd);
  EXPECT_FALSE(end.counts);
  EXPECT_EQ(end.text, "");
  EXPECT_EQ(answer.finished(), FinishReason::Stop);
}

TEST_F(AnswerTest, ALimitInsideACharacterShowsNothingOfIt) {
  Answer cut = make({.sampling = {}, .stops = {}, .tokens_max = 3, .given = {}});
  EXPECT_EQ(feed(cut, "a\xF0\x9F"), "a");
  EXPECT_EQ(cut.finished(), FinishReason::Length);
  Answer whole = make({.sampling = {}, .stops = {}, .tokens_max = 3, .given = {}});
  EXPECT_EQ(feed(whole, "a\xC3\xA9"), "a\xC3\xA9");
  Answer invalid = make({.sampling = {}, .stops = {}, .tokens_max = 2, .given = {}});
  EXPECT_EQ(feed(invalid, "a\xA9"), "a\xEF\xBF\xBD");
}

TEST_F(AnswerTest, WhatWasHeldForAStopStringIsShownAtTheEnd) {
  Answer answer = make({.sampling = {}, .stops = {"hello"}, .tokens_max = 10, .given = {}});
  EXPECT_EQ(feed(answer, "a hel"), "a ");
  EXPECT_EQ(next(answer, engine::kFakeTurnEnd).text, "hel");
  Answer stopped = make({.sampling = {}, .stops = {"hello"}, .tokens_max = 10, .given = {}});
  EXPECT_EQ(feed(stopped, "a hello"), "a ");
  EXPECT_EQ(stopped.finished(), FinishReason::Stop);
}

TEST_F(AnswerTest, GivenTokensAreReplayedInSilence) {
  Answer answer =
      make({.sampling = {}, .stops = {"hello"}, .tokens_max = 6, .given = {'a', 'h', 'e'}});
  EXPECT_FALSE(answer.finished());
  EXPECT_EQ(feed(answer, "y"), "hey");
  EXPECT_EQ(feed(answer, "\xC3\xA9"), "\xC3\xA9");
  EXPECT_EQ(answer.finished(), FinishReason::Length);
}

TEST_F(AnswerTest, GivenTokensMayEndIt) {
  EXPECT_EQ(make({.sampling = {}, .stops = {}, .tokens_max = 2, .given = {'a', 'b'}}).finished(),
            FinishReason::Length);
  EXPECT_EQ(
      make({.sampling = {}, .stops = {"ab"}, .tokens_max = 9, .given = {'a', 'b'}}).finished(),
      FinishReason::Stop);
}

// With log probabilities every step's text is that of its tokens.
TEST_F(AnswerTest, LogprobsComeWithExactlyTheTokensOfTheText) {
  Answer answer =
      make({.sampling = {}, .stops = {"hello"}, .tokens_max = 99, .given = {}, .top_logprobs = 2});
  EXPECT_EQ(next(answer, 'a').logprobs.size(), 1U);
  EXPECT_TRUE(next(answer, 'h').tokens.empty());
  const Answer::Step both = next(answer, 'i');
  EXPECT_EQ(both.text, "hi");
  EXPECT_EQ(both.tokens, (std::vector<engine::Token>{'h', 'i'}));
  ASSERT_EQ(both.logprobs.size(), 2U);
  EXPECT_EQ(both.logprobs[1].chosen.token, 'i');
  EXPECT_EQ(both.logprobs[1].top.size(), 2U);
  EXPECT_TRUE(next(answer, 0xC3).tokens.empty());
  EXPECT_EQ(next(answer, 0xA9).logprobs.size(), 2U);
}

TEST_F(AnswerTest, TokensOfAStopStringHaveNoLogprobs) {
  Answer answer =
      make({.sampling = {}, .stops = {"lo"}, .tokens_max = 99, .given = {}, .top_logprobs = 0});
  std::size_t told = 0;
  std::size_t tokens = 0;
  for (const char byte : std::string_view("hello")) {
    const Answer::Step step = next(answer, byte);
    told += step.logprobs.size();
    tokens += step.tokens.size();
  }
  EXPECT_EQ(answer.finished(), FinishReason::Stop);
  EXPECT_EQ(told, 3U);
  EXPECT_EQ(tokens, 5U);
  // At the end of the answer what was held is told as well.
  Answer ended =
      make({.sampling = {}, .stops = {"lo"}, .tokens_max = 99, .given = {}, .top_logprobs = 0});
  EXPECT_EQ(feed(ended, "hel"), "he");
  const Answer::Step end = next(ended, engine::kFakeTurnEnd);
  EXPECT_EQ(end.text, "l");
  EXPECT_EQ(end.logprobs.size(), 1U);
}

TEST_F(AnswerTest, ResumedInWholeTokensItShowsWhatIsMissing) {
  // "hel" was shown though it begins a stop string that was held: by other bytes after it.
  for (const std::string text : {"a help", "hel", "h\xC3\xA9lp"}) {
    for (std::size_t given = 0; given < text.size(); ++given) {
      AnswerSpec spec{
          .sampling = {}, .stops = {"hello"}, .tokens_max = 99, .given = {}, .top_logprobs = 0};
      Answer first = make(spec);
      std::string shown;
      std::vector<engine::Token> tokens;
      for (std::size_t i = 0; i < given; ++i) {
        const Answer::Step step = next(first, static_cast<unsigned char>(text[i]));
        shown += step.text;
        tokens.insert(tokens.end(), step.tokens.begin(), step.tokens.end());
      }
      spec.given = tokens;
      EXPECT_EQ(given_text(spec, *tokenizer_), shown);
      Answer second = make(spec);
      shown += feed(second, text.substr(tokens.size()));
      shown += next(second, engine::kFakeTurnEnd).text;
      EXPECT_EQ(shown, text) << given;
    }
  }
}

TEST_F(AnswerTest, ControlTokensAreWrittenOutWhereTheAnswerHasThem) {
  Answer answer = make({.sampling = {},
                        .stops = {},
                        .tokens_max = 99,
                        .given = {},
                        .top_logprobs = {},
                        .shown_controls = {engine::kFakeTurnStart}});
  EXPECT_EQ(next(answer, engine::kFakeTurnStart).text, "<|im_start|>");
  Answer plain = make({.sampling = {}, .stops = {}, .tokens_max = 99, .given = {}});
  EXPECT_EQ(next(plain, engine::kFakeTurnStart).text, "");
}

}  // namespace
}  // namespace flotilla::runner
