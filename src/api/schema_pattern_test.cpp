#include "api/schema_pattern.h"

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

std::string held(std::string_view pattern) {
  std::string why;
  const auto text = holdable_pattern(pattern, why);
  return text ? *text : "refused: " + why;
}

TEST(HoldablePattern, SaysTheSameInTheRulesWords) {
  EXPECT_EQ(held("^abc$"), "^abc$");
  EXPECT_EQ(held(R"(^\d{3}-\w+$)"), "^[0-9]{3}-[A-Za-z0-9_]+$");
  EXPECT_EQ(held("^(?:a|b)?c*?$"), "^(a|b)?c*$");
  EXPECT_EQ(held(R"(^[\d.+\-\]]+\.[a-z]{2,}$)"), R"(^[0-9.+\-\]]+\.[a-z]{2,}$)");
  EXPECT_EQ(held(R"(^a\/b\@c$)"), "^a/b@c$");
}

TEST(HoldablePattern, StaysInsideAJsonString) {
  EXPECT_EQ(held("^.$"), R"(^[^"\\\x00-\x1F\x7F]$)");
  EXPECT_EQ(held("^[^a]$"), R"(^[^"\\\x00-\x1F\x7Fa]$)");
  for (const char* pattern :
       {"^\"$", "^[\"]$", "^[ -~]$", "^[A-z]$", R"(^[\\]$)", R"(^\\$)", "^[\n]$"}) {
    EXPECT_TRUE(held(pattern).starts_with("refused")) << pattern << " " << held(pattern);
  }
}

TEST(HoldablePattern, RefusesWhatCannotBeHeld) {
  for (const char* pattern :
       {"abc",        "^abc",          "abc$",       "^",         "",       R"(^abc\$)",
        "^(?=a)b$",   R"(^\bword\b$)", R"(^(a)\1$)", "^a^b$",     "^a$b$",  "^(a$",
        "^a)$",       "^[a$",          "^[]$",       "^a{5000}$", "^a{x}$", "^a{2$",
        R"(^\p{L}$)", R"(^\D$)",       "^a{1,2,3}$"}) {
    EXPECT_TRUE(held(pattern).starts_with("refused")) << pattern << " -> " << held(pattern);
  }
  EXPECT_TRUE(
      held("^" + std::string(100, '(') + std::string(100, ')') + "$").starts_with("refused"));
}

}  // namespace
}  // namespace flotilla::api
