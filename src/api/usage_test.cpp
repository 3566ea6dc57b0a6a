#include "api/usage.h"

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

std::vector<UsageRow> rows() {
  return {{.key = "key-1",
           .name = "ci",
           .day = 20'787,
           .requests = 3,
           .prompt_tokens = 90,
           .cached_tokens = 40,
           .generated_tokens = 21},
          {.requests = 1}};
}

TEST(Usage, is_told_by_key) {
  const std::string json = usage_json(UsageBy::Key, rows());
  EXPECT_EQ(json,
            R"({"by":"key","rows":[{"key":"key-1","name":"ci","requests":3,"prompt_tokens":90,)"
            R"("cached_tokens":40,"generated_tokens":21},{"key":"","name":"","requests":1,)"
            R"("prompt_tokens":0,"cached_tokens":0,"generated_tokens":0}]})");
  const auto back = read_usage(UsageBy::Key, json);
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), 2U);
  EXPECT_EQ(back->at(0).title, "ci");
  EXPECT_EQ(back->at(0).row.generated_tokens, 21);
  EXPECT_EQ(back->at(1).title, "without a key");
  EXPECT_EQ(usage_csv(UsageBy::Key, rows()),
            "key,name,requests,prompt_tokens,cached_tokens,generated_tokens\n"
            "key-1,ci,3,90,40,21\n,,1,0,0,0\n");
}

TEST(Usage, is_told_by_day) {
  EXPECT_EQ(iso_day(0), "1970-01-01");
  EXPECT_EQ(iso_day(20'787), "2026-11-30");
  const auto back = read_usage(UsageBy::Day, usage_json(UsageBy::Day, rows()));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->at(0).title, "2026-11-30");
  EXPECT_EQ(usage_csv(UsageBy::Day, {rows().front()}),
            "day,requests,prompt_tokens,cached_tokens,generated_tokens\n2026-11-30,3,90,40,21\n");
  EXPECT_FALSE(read_usage(UsageBy::Day, "{}"));
}

}  // namespace
}  // namespace flotilla::api
