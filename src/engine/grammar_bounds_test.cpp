#include "engine/grammar_bounds.h"

#include <gtest/gtest.h>

namespace flotilla::engine {
namespace {

std::string times(int count, const std::string& text) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

TEST(GrammarBounds, RepetitionsCountAsOftenAsTheyAreWrittenOut) {
  EXPECT_LT(written_out("root ::= \"a\" # \"b\"{1000}\n"), 30U);
  EXPECT_GT(written_out("root ::= [a-z]{0,1000}"), 1000U);
  EXPECT_GT(written_out("root ::= \"" + times(100, "a") + "\"{2,1000}"), 100'000U);
  EXPECT_GT(written_out("root ::= \"a\"{1000}{2}"), 2000U);
  EXPECT_GT(written_out("root ::= " + times(200, "[a-z]{0,1000} ")), kWrittenOutMax);
  EXPECT_GT(written_out("root ::= \"a\"{99999999999999999999}"), kWrittenOutMax);
  EXPECT_LT(written_out("root ::= \"{\" " + times(50, "char{0,1000} ") + "\"}\""), kWrittenOutMax);
}

TEST(GrammarBounds, ARowThatMayBeLeftOutIsAsLongAsItIsWrittenOut) {
  const auto skip = [](const std::string& rules) { return longest_skip(rules, nullptr); };
  EXPECT_EQ(skip("root ::= \"a\" | \"b\""), 0);
  EXPECT_EQ(skip("root ::= [0-9]+ \".\" [0-9]{0,1000}"), 1);
  EXPECT_EQ(skip("root ::= \"x\" \"a\"? \"b\"* \"c\"{0,3}"), 3);
  EXPECT_EQ(skip("root ::= ws \"a\" ws\nws ::= [ \\t]*"), 1);
  EXPECT_GT(skip("root ::= x{0,40}\nx ::= \"a\"? | \"b\"?"), kSkipsMax);
  EXPECT_GT(skip("root ::= \"long enough\" (\"a\"? \"b\"?){40}"), kSkipsMax);
  EXPECT_GT(skip("root ::= " + times(20, "[a-z]{0,10} ")), kSkipsMax);
  EXPECT_EQ(skip("root ::= (("), 0);
}

}  // namespace
}  // namespace flotilla::engine
