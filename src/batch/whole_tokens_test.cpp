#include "batch/whole_tokens.h"

#include <string>

#include <gtest/gtest.h>

#include "batch/stop_text.h"
#include "batch/test_seeds.h"

namespace flotilla::batch {
namespace {

TEST(WholeTokens, TextIsTakenAtBordersOfTokens) {
  WholeTokens tokens;
  tokens.add("Once ");
  tokens.add("upon");
  const auto part = tokens.take(7);  // "Once up"
  EXPECT_EQ(part.tokens, 1U);
  EXPECT_EQ(part.bytes, 5U);
  EXPECT_EQ(tokens.take(3).tokens, 0U);
  EXPECT_EQ(tokens.take(4).tokens, 1U);
  EXPECT_EQ(tokens.waiting(), 0U);
}

TEST(WholeTokens, TokensOfOneCharacterGoTogether) {
  WholeTokens tokens;
  tokens.add("\xE2");
  EXPECT_EQ(tokens.take(0).tokens, 0U);
  tokens.add("\x82");
  EXPECT_EQ(tokens.take(0).tokens, 0U);
  tokens.add("\xAC!");
  const auto part = tokens.take(4);
  EXPECT_EQ(part.tokens, 3U);
  EXPECT_EQ(part.bytes, 4U);
}

TEST(WholeTokens, TokensWithoutTextGoWithWhatIsBeforeThem) {
  WholeTokens tokens;
  tokens.add("a");
  tokens.add("");
  EXPECT_EQ(tokens.take(1).tokens, 2U);
}

TEST(WholeTokens, ATextThatStopsInsideATokenHasAllTokensThatBegan) {
  WholeTokens tokens;
  tokens.add("one");
  tokens.add(" two");
  tokens.add(" three");
  EXPECT_EQ(tokens.begun(0), 0U);
  EXPECT_EQ(tokens.begun(3), 1U);
  EXPECT_EQ(tokens.begun(4), 2U);
  EXPECT_EQ(tokens.begun(99), 3U);
}

// Whatever the tokens' bytes are and however much of their text is ready: parts are made of whole
// tokens, and together they are the text.
TEST(WholeTokens, PartsAddUpToTheText) {
  for_each_seed(300, [](Random& random) {
    WholeTokens tokens;
    StopText text({});
    std::string released;
    std::string shown;
    std::size_t counted = 0;
    const std::size_t count = 1 + random.below(30);
    for (std::size_t i = 0; i < count; ++i) {
      std::string bytes;
      static const std::string_view pieces[] = {"a",        "\xC3", "\xA9", "\xF0\x9F",
                                                "\x98\x80", "\xFF", "",     "word "};
      for (std::size_t n = random.below(3); n > 0; --n) bytes += pieces[random.below(8)];
      tokens.add(bytes);
      released += text.add(bytes).text;
      const std::size_t ready = random.below(released.size() - shown.size() + 1);
      const auto part = tokens.take(ready);
      EXPECT_LE(part.bytes, ready);
      shown += released.substr(shown.size(), part.bytes);
      counted += part.tokens;
    }
    const auto rest = tokens.take(released.size() - shown.size());
    shown += released.substr(shown.size(), rest.bytes);
    counted += rest.tokens;
    EXPECT_EQ(counted + tokens.waiting(), count);
    if (tokens.waiting() == 0) {
      EXPECT_EQ(shown, released);
    }
  });
}

}  // namespace
}  // namespace flotilla::batch
