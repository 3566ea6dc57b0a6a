#include "engine/marked_rules.h"

#include <json-schema-to-grammar.h>

#include <gtest/gtest.h>

#include "base/rule_mark.h"
#include "engine/grammar.h"
#include "engine/test_model.h"

namespace flotilla::engine {
namespace {

TEST(MarkedRules, AMarkedConstantBecomesTheRulesThatItHolds) {
  const std::string mark(kRuleMark);
  const std::string schema = R"-({"type":"object","properties":{"a":{"const":")-" + mark +
                             R"-(([1-3] | [9]{2,3})"},"b":{"enum":["x",")-" + mark +
                             R"-([a]?"]}},"required":["a","b"],"additionalProperties":false})-";
  const std::string rules = reveal_marked_rules(json_schema_to_grammar(common_json::parse(schema)));
  EXPECT_EQ(rules.find(mark), std::string::npos) << rules;
  for (const auto& [text, right] :
       std::initializer_list<std::pair<const char*, bool>>{{R"({"a": 2, "b": "x"})", true},
                                                           {R"({"a": 999, "b": a})", true},
                                                           {R"({"a": 4, "b": "x"})", false},
                                                           {R"({"a": "2", "b": "x"})", false}}) {
    const auto grammar = sample_model().grammars->make({.rules = rules});
    ASSERT_TRUE(grammar) << grammar.error().message << rules;
    bool follows = true;
    for (const Token token : sample_model().tokenizer->tokenize(text, false, false)) {
      follows = follows && (*grammar)->allows(token);
      if (follows) (*grammar)->accept(token);
    }
    EXPECT_EQ(follows, right) << text;
  }
}

TEST(MarkedRules, OtherRulesStayAsTheyAre) {
  const std::string rules = json_schema_to_grammar(
      common_json::parse(R"({"type":"object","properties":{"a":{"const":"flotilla"}}})"));
  EXPECT_EQ(reveal_marked_rules(rules), rules);
}

}  // namespace
}  // namespace flotilla::engine
