#include "engine/grammar.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "engine/sampler.h"
#include "engine/test_model.h"
#include "engine/trigger_watch.h"

namespace flotilla::engine {
namespace {

constexpr Token kTurnEnd = 2;  // <|im_end|>
constexpr float kNever = std::numeric_limits<float>::lowest();

std::unique_ptr<Grammar> grammar(const GrammarSpec& spec) {
  auto made = sample_model().grammars->make(spec);
  if (!made) ADD_FAILURE() << made.error().message;
  return made ? std::move(*made) : nullptr;
}

std::vector<Token> tokens_of(const std::string& text) {
  return sample_model().tokenizer->tokenize(text, false, false);
}

// Feeds the text's tokens; false at the first that the grammar refuses.
bool follows(Grammar& grammar, const std::string& text) {
  for (const Token token : tokens_of(text)) {
    if (!grammar.allows(token)) return false;
    grammar.accept(token);
  }
  return true;
}

TEST(LlamaGrammar, AllowsWhatTheRulesSayAndAnEndOnlyThere) {
  const auto rules = grammar({.rules = R"(root ::= "yes" | "no")"});
  EXPECT_FALSE(rules->allows(kTurnEnd));
  EXPECT_FALSE(rules->allows(tokens_of("maybe")[0]));
  EXPECT_TRUE(follows(*rules, "yes"));
  EXPECT_TRUE(rules->allows(kTurnEnd));
  EXPECT_FALSE(rules->allows(tokens_of("yes")[0]));
}

TEST(LlamaGrammar, TheMaskIsWhatEachTokenAloneIsTold) {
  const auto rules = grammar({.rules = R"(root ::= "{" [a-z "\n]* "}")"});
  EXPECT_TRUE(follows(*rules, "{\"a"));
  std::vector<float> logits(static_cast<std::size_t>(sample_model().tokenizer->vocabulary()), 1.0F);
  rules->mask(logits);
  int allowed = 0;
  for (Token token = 0; token < sample_model().tokenizer->vocabulary(); ++token) {
    const bool kept = logits[static_cast<std::size_t>(token)] != kNever;
    allowed += kept ? 1 : 0;
    ASSERT_EQ(kept, rules->allows(token)) << token;
  }
  EXPECT_GT(allowed, 100);
  EXPECT_LT(allowed, 40'000);
}

TEST(LlamaGrammar, ControlTokensAreNoTextUnlessTheyAreShown) {
  const GrammarSpec any{.rules = "root ::= [^x]*"};
  EXPECT_FALSE(grammar(any)->allows(1));  // <|im_start|>
  GrammarSpec shown = any;
  shown.shown_controls = {1};
  EXPECT_TRUE(grammar(shown)->allows(1));
}

TEST(LlamaGrammar, WhatTheRulesRefuseEndsTheAnswerAndNothingElse) {
  const auto rules = grammar({.rules = R"(root ::= "yes")"});
  rules->accept(tokens_of("no")[0]);
  EXPECT_TRUE(rules->allows(kTurnEnd));
  EXPECT_FALSE(rules->allows(tokens_of("yes")[0]));
  rules->accept(kTurnEnd);  // no abort, allowed or not
  grammar({.rules = R"(root ::= "yes")"})->accept(kTurnEnd);
}

TEST(LlamaGrammar, BrokenRulesAreTheRequestsFault) {
  for (const char* rules : {"root ::= ", "root := x", "other ::= \"a\"", "root ::= root \"a\"",
                            "root ::= missing", "root ::= \"a", "root ::= (\"a\"", "\x01"}) {
    const auto made = sample_model().grammars->make({.rules = rules});
    if (std::string_view(rules) == "root ::= ") continue;  // an empty answer is one
    ASSERT_FALSE(made) << rules;
    EXPECT_EQ(made.error().code, Code::InvalidArgument);
  }
}

TEST(LlamaGrammar, ALazyOneHoldsFromItsTriggerOn) {
  const GrammarSpec spec{
      .rules = R"(root ::= "<call>" [0-9]+ "</call>")", .begun = {}, .trigger_words = {"<call>"}};
  const auto rules = grammar(spec);
  EXPECT_TRUE(follows(*rules, "Let me see, 1 < 2. "));
  EXPECT_TRUE(rules->allows(kTurnEnd));
  EXPECT_TRUE(follows(*rules, "<call>"));
  EXPECT_FALSE(rules->allows(kTurnEnd));
  EXPECT_FALSE(rules->allows(tokens_of("x")[0]));
  EXPECT_TRUE(follows(*rules, "12</call>"));
  EXPECT_TRUE(rules->allows(kTurnEnd));
  EXPECT_FALSE(rules->allows(tokens_of("x")[0]));
}

TEST(LlamaGrammar, TextInFrontOfTheAnswerCounts) {
  const auto rules = grammar({.rules = R"(root ::= "turn\n" "yes")", .begun = "turn\n"});
  EXPECT_TRUE(follows(*rules, "yes"));
}

TEST(TriggerWatch, FindsWordsOverBordersOfPieces) {
  TriggerWatch watch({.rules = "x", .begun = {}, .trigger_words = {"<call>", "["}});
  EXPECT_FALSE(watch.add("some <ca"));
  EXPECT_FALSE(watch.add("l"));
  const auto at = watch.add("l>{");
  ASSERT_TRUE(at);
  EXPECT_EQ(*at, 5U);
  EXPECT_EQ(watch.since(*at), "<call>{");
}

TEST(TriggerWatch, FindsLateTriggersInLongTexts) {
  TriggerWatch watch({.rules = "x", .begun = {}, .trigger_words = {"<call>"}});
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(watch.add("word "));
  const auto at = watch.add("<call>1");
  ASSERT_TRUE(at);
  EXPECT_EQ(*at, 5000U);
  EXPECT_EQ(watch.since(*at), "<call>1");
}

TEST(TriggerWatch, NothingCountsWhileTheModelThinks) {
  const GrammarSpec spec{.rules = "x",
                         .begun = "<think>\n",
                         .trigger_words = {"<call>"},
                         .trigger_patterns = {},
                         .reasoning_start = "<think>",
                         .reasoning_ends = {"</think>"}};
  TriggerWatch thinking(spec);
  EXPECT_FALSE(thinking.add("I could <call> it.</thi"));
  EXPECT_FALSE(thinking.add("nk> So: "));
  EXPECT_TRUE(thinking.add("<call>"));
  GrammarSpec open = spec;
  open.begun = "<think></think>";
  TriggerWatch not_thinking(open);
  EXPECT_FALSE(not_thinking.add("<think> <call> "));
  EXPECT_TRUE(not_thinking.add("</think><call>"));
}

TEST(TriggerWatch, PatternsBeginAtTheirFirstGroup) {
  TriggerWatch watch({.rules = "x",
                      .begun = {},
                      .trigger_words = {},
                      .trigger_patterns = {"start>assistant( to=)", "^ to="}});
  EXPECT_FALSE(watch.add("a to="));
  const auto at = watch.add(" start>assistant to=f");
  ASSERT_TRUE(at);
  EXPECT_EQ(watch.since(*at), " to=f");
}

// The choice under a grammar is the choice among what it allows: same shares, whatever the first
// tries were.
TEST(GuidedSampler, KeepsTheSharesOfWhatIsAllowed) {
  const Token yes = tokens_of("yes")[0];
  const Token no = tokens_of("no")[0];
  const Token maybe = tokens_of("maybe")[0];
  std::vector<float> logits(static_cast<std::size_t>(sample_model().tokenizer->vocabulary()),
                            -20.0F);
  logits[static_cast<std::size_t>(yes)] = 1.0F;
  logits[static_cast<std::size_t>(no)] = 0.0F;
  logits[static_cast<std::size_t>(maybe)] = 2.0F;
  int count = 0;
  constexpr int kDraws = 400;
  for (int i = 0; i < kDraws; ++i) {
    Sampler sampler({.seed = static_cast<std::uint64_t>(i)}, {kTurnEnd},
                    grammar({.rules = R"(root ::= "yes" | "no")"}));
    const Token token = sampler.sample(logits, 0);
    ASSERT_TRUE(token == yes || token == no);
    count += token == yes ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(count) / kDraws, 0.731, 0.08);
}

TEST(GuidedSampler, TheGreedyChoiceIsTheLikeliestThatIsAllowed) {
  std::vector<float> logits(static_cast<std::size_t>(sample_model().tokenizer->vocabulary()));
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 1000);
  const Token no = tokens_of("no")[0];
  logits[static_cast<std::size_t>(no)] = -3.0F;
  Sampler sampler({.temperature = 0}, {kTurnEnd}, grammar({.rules = R"(root ::= "no")"}));
  const Token first = sampler.sample(logits, 0);
  EXPECT_TRUE(first == no || first == tokens_of("n")[0]) << first;
}

TEST(GuidedSampler, WhereNothingIsAllowedThereIsNoToken) {
  std::vector<float> logits(static_cast<std::size_t>(sample_model().tokenizer->vocabulary()), 0.0F);
  std::vector<Token> ends;
  for (Token token = 0; token < 64; ++token) {
    if (sample_model().tokenizer->ends_generation(token)) ends.push_back(token);
  }
  Sampler sampler({.ignore_eos = true}, ends, grammar({.rules = R"(root ::= "no")"}));
  sampler.accept(tokens_of("no")[0]);
  EXPECT_EQ(sampler.sample(logits, 1), kNoToken);
}

TEST(Logprobs, AreOfTheModelAlone) {
  std::vector<float> logits = {1.0F, 3.0F, 2.0F, std::numeric_limits<float>::quiet_NaN()};
  const ChosenLogprob told = logprob_of(logits, 0, 2);
  const double total = std::log(std::exp(1.0) + std::exp(3.0) + std::exp(2.0));
  EXPECT_NEAR(told.chosen.logprob, 1.0 - total, 1e-5);
  ASSERT_EQ(told.top.size(), 2U);
  EXPECT_EQ(told.top[0].token, 1);
  EXPECT_NEAR(told.top[0].logprob, 3.0 - total, 1e-5);
  EXPECT_EQ(told.top[1].token, 2);
  EXPECT_TRUE(logprob_of(logits, 0, 0).top.empty());
}

TEST(LlamaGrammar, RulesThatWouldCostTooMuchAreRefusedBeforeTheyAreCompiled) {
  const auto wrong = [](GrammarSpec spec) {
    const auto made = sample_model().grammars->make(spec);
    return made ? std::string() : made.error().reason + ": " + made.error().message;
  };
  std::string wide = "root ::= ";
  for (int i = 0; i < 200; ++i) wide += "[a-z]{0,1000} ";
  EXPECT_NE(wrong({.rules = wide}).find("grammar_too_complex"), std::string::npos);
  const std::string open = "root ::= x{0,40}\nx ::= \"a\"? | \"b\"?";
  EXPECT_NE(wrong({.rules = open, .by_hand = true}).find("in a row open"), std::string::npos);
  EXPECT_EQ(wrong({.rules = "root ::= [0-9]{1,500} (\".\" [0-9]{0,20})?", .by_hand = true}), "");
}

}  // namespace
}  // namespace flotilla::engine
