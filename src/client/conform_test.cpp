#include "client/conform.h"

#include <set>

#include <gtest/gtest.h>

namespace flotilla::client {
namespace {

CaseSeen seen(std::string id, std::string api, std::string breach) {
  return {.id = std::move(id), .why = {}, .api = std::move(api), .breach = std::move(breach)};
}

TEST(Conform, scores_are_by_api_and_of_all) {
  const auto scores = scores_of({seen("a", "responses", ""), seen("b", "chat completions", "no"),
                                 seen("c", "responses", "no")});
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_EQ(scores[0].api, "responses");
  EXPECT_EQ(scores[0].held, 1);
  EXPECT_EQ(scores[0].of, 2);
  EXPECT_EQ(scores[1].held, 0);
  EXPECT_EQ(scores[2].api, "all");
  EXPECT_EQ(scores[2].held, 1);
  EXPECT_EQ(scores[2].of, 3);
  EXPECT_EQ(scores_of({}).back().of, 0);
}

TEST(Conform, text_and_json_tell_what_held_and_why_not) {
  const std::vector<CaseSeen> cases{seen("a", "responses", ""), seen("b", "responses", "a \"x\"")};
  EXPECT_NE(score_lines(cases).find("1 of   2 held   50 %"), std::string::npos);
  const std::string json = conform_json("http://x", "m", cases);
  EXPECT_NE(json.find(R"("held":1,"of":2)"), std::string::npos);
  EXPECT_NE(json.find(R"("id":"a","api":"responses","why":null,"held":true,"reason":null)"),
            std::string::npos);
  EXPECT_NE(json.find(R"("held":false,"reason":"a \"x\"")"), std::string::npos);
}

TEST(Conform, ids_are_of_one_case_each_and_can_be_chosen) {
  const std::vector<std::string> all = conform_ids("");
  EXPECT_GT(all.size(), 100U);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
  const std::vector<std::string> some = conform_ids("seed-");
  EXPECT_FALSE(some.empty());
  for (const std::string& id : some) EXPECT_NE(id.find("seed-"), std::string::npos) << id;
  EXPECT_TRUE(conform_ids("no case has this name").empty());
}

}  // namespace
}  // namespace flotilla::client
