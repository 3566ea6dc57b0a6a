#include "batch/ngram_draft.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "batch/test_seeds.h"

namespace flotilla::batch {
namespace {

using engine::Token;

std::vector<Token> letters(std::string_view text) { return {text.begin(), text.end()}; }

// A sequence whose tokens are letters.
struct Read {
  explicit Read(std::string_view prompt) : tokens(letters(prompt)), draft(tokens, 100) {}

  void add(std::string_view text) {
    for (const char letter : text) {
      tokens.push_back(letter);
      draft.add(tokens);
    }
  }
  std::string guess(int most) const {
    const auto guessed = draft.guess(tokens, most);
    return {guessed.begin(), guessed.end()};
  }

  std::vector<Token> tokens;
  NgramDraft draft;
};

TEST(NgramDraft, goes_on_as_it_did_after_the_same_tokens) {
  Read read("the quick fox. the ");
  EXPECT_TRUE(read.draft.has_guess());
  EXPECT_EQ(read.guess(9), "quick fox");
  read.add("quack");
  EXPECT_FALSE(read.draft.has_guess());
  EXPECT_EQ(read.guess(9), "");
}

TEST(NgramDraft, takes_the_latest_place_and_keeps_one_that_is_right) {
  Read read("abcx abcy ab");
  read.add("c");
  EXPECT_EQ(read.guess(1), "y");
  // " abc" and then x stood there first; what is followed from there on stays followed.
  Read follows("123abcX..abcY..12");
  follows.add("3");
  EXPECT_EQ(follows.guess(4), "abcX");
  follows.add("abc");
  EXPECT_EQ(follows.guess(1), "X");
}

TEST(NgramDraft, a_period_goes_on_beyond_what_there_is) {
  const Read read("xababa");
  EXPECT_EQ(read.guess(7), "bababab");
  const Read same("aaaa");
  EXPECT_EQ(same.guess(3), "aaa");
}

TEST(NgramDraft, short_sequences_have_no_guess) {
  for (const char* prompt : {"", "a", "aa", "aaa"}) {
    Read read(prompt);
    EXPECT_EQ(read.guess(3), "") << prompt;
  }
}

TEST(NgramDraft, the_rate_follows_what_was_right) {
  Read read("abcdefgh");
  for (int i = 0; i < 5; ++i) read.add("abcdefgh");
  EXPECT_GT(read.draft.rate(), 0.95);
  for (const char* wrong : {"abc1", "bcd2", "cde3", "def4", "efg5", "fgh6", "abc7", "bcd8"})
    read.add(wrong);
  EXPECT_LT(read.draft.rate(), 0.5);
}

TEST(NgramDraft, a_guess_is_what_followed_equal_tokens) {
  for_each_seed(200, [](Random& random) {
    const auto kinds = 2 + random.below(3);
    std::vector<Token> tokens(random.below(40));
    for (Token& token : tokens) token = static_cast<Token>(random.below(kinds));
    NgramDraft draft(tokens, tokens.size());
    for (int i = 0; i < 300; ++i) {
      tokens.push_back(static_cast<Token>(random.below(kinds)));
      draft.add(tokens);
      const auto guess = draft.guess(tokens, 5);
      EXPECT_EQ(guess.empty(), !draft.has_guess());
      if (guess.empty()) continue;
      ASSERT_EQ(guess.size(), 5U);
      std::vector<Token> wanted(tokens.end() - 3, tokens.end());
      wanted.push_back(guess[0]);
      EXPECT_NE(std::ranges::search(tokens, wanted).begin(), tokens.end());
      EXPECT_GE(draft.rate(), 0);
      EXPECT_LE(draft.rate(), 1);
    }
  });
}

TEST(NgramDraft, an_answer_far_longer_than_the_table_is_still_guessed) {
  Random random(3);
  std::vector<Token> tokens;
  NgramDraft draft(tokens, 0);
  const auto add = [&](Token token) {
    tokens.push_back(token);
    draft.add(tokens);
  };
  for (int i = 0; i < 20'000; ++i) add(static_cast<Token>(random.below(50'000)));
  for (int i = 0; i < 40; ++i) add(1 + i % 10);
  EXPECT_GT(draft.rate(), 0.9);
}

}  // namespace
}  // namespace flotilla::batch
