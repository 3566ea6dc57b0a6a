#include "api/kept_items.h"

#include <map>

#include <gtest/gtest.h>

#include "api/json.h"

namespace flotilla::api {
namespace {

using Query = std::map<std::string, std::string, std::less<>>;

QueryValue value_of(const Query& query) {
  return [&query](std::string_view name) -> std::optional<std::string> {
    const auto found = query.find(name);
    return found == query.end() ? std::nullopt : std::optional(found->second);
  };
}

// The ids that a page has, "…" behind it where there are more; or the parameter that is wrong.
std::string page(const Query& query) {
  const KeptAnswer kept{.id = "resp_7",
                        .messages = {},
                        .body = "{}",
                        .input = R"([{"id":"a"},{"id":null},{"id":"c"}])"};
  const auto asked = read_items_asked(value_of(query));
  if (!asked) return asked.error().param;
  const auto text = input_items_json(kept, *asked);
  if (!text) return text.error().param;
  const json::Object list = *json::parse_object(*text);
  std::string out;
  for (const json::Value& item : list.at("data").as_array())
    out += std::string(item.at("id").as_string()) + " ";
  return out + (list.at("has_more").as_bool() ? "…" : "");
}

TEST(KeptItems, NewestComeFirstUnlessAskedOtherwise) {
  EXPECT_EQ(page({}), "c item_7_1 a ");
  EXPECT_EQ(page({{"order", "asc"}}), "a item_7_1 c ");
}

TEST(KeptItems, PagesFollowEachOther) {
  EXPECT_EQ(page({{"limit", "2"}}), "c item_7_1 …");
  EXPECT_EQ(page({{"limit", "2"}, {"after", "item_7_1"}}), "a ");
  EXPECT_EQ(page({{"after", "a"}}), "");
}

TEST(KeptItems, WhatIsWrongIsNamed) {
  EXPECT_EQ(page({{"order", "up"}}), "order");
  EXPECT_EQ(page({{"limit", "0"}}), "limit");
  EXPECT_EQ(page({{"limit", "2x"}}), "limit");
  EXPECT_EQ(page({{"after", "z"}}), "after");
  EXPECT_EQ(page({{"include[]", "x"}}), "include");
}

TEST(KeptItems, AStoredResponseComesWhole) {
  EXPECT_TRUE(check_response_query(value_of({{"stream", "false"}})));
  EXPECT_EQ(check_response_query(value_of({{"stream", "true"}})).error().param, "stream");
  EXPECT_EQ(check_response_query(value_of({{"starting_after", "3"}})).error().param,
            "starting_after");
  EXPECT_EQ(check_response_query(value_of({{"include[]", "x"}})).error().param, "include");
}

}  // namespace
}  // namespace flotilla::api
