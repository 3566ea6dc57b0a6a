#include "engine/either_rules.h"

#include <gtest/gtest.h>

namespace flotilla::engine {
namespace {

TEST(EitherRules, NamesOfBothAreKeptApart) {
  EXPECT_EQ(
      either_rules("root ::= word{2,3} \"root \\\" x\" # root", "root ::= [^word\\]a-z] | <[12]>"),
      "root ::= a-root | b-root\n"
      "a-root ::= a-word{2,3} \"root \\\" x\" # root\n"
      "b-root ::= [^word\\]a-z] | <[12]>\n");
}

TEST(EitherRules, BrokenRulesEndToo) {
  for (const char* broken : {"root ::= \"", "root ::= [\\", "{", "#", "<", ""}) {
    EXPECT_TRUE(either_rules(broken, broken).starts_with("root ::= a-root | b-root\n"));
  }
}

}  // namespace
}  // namespace flotilla::engine
