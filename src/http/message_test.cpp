#include "http/message.h"

#include <gtest/gtest.h>

namespace flotilla::http {
namespace {

TEST(Headers, names_compare_without_case_and_set_replaces_all) {
  Headers headers{{"X-A", "1"}, {"x-a", "2"}, {"B", "3"}};
  EXPECT_EQ(headers.find("x-A"), "1");
  headers.set("X-a", "4");
  EXPECT_EQ(headers.fields().size(), 2U);
  EXPECT_EQ(headers.find("X-A"), "4");
  headers.remove("b");
  EXPECT_EQ(headers.find("B"), std::nullopt);
}

TEST(Headers, a_prefix_removes_whoever_begins_with_it) {
  Headers headers{{"Flotilla-Seed", "1"}, {"flotilla-x", "2"}, {"Flotilla", "3"}, {"Z", ""}};
  headers.remove_prefix("FLOTILLA-");
  ASSERT_EQ(headers.fields().size(), 2U);
  EXPECT_EQ(headers.fields()[0].first, "Flotilla");
}

TEST(PercentDecode, decodes_or_refuses) {
  const std::pair<const char*, std::optional<std::string>> cases[] = {
      {"", ""},
      {"abc", "abc"},
      {"%41%2f%2F", "A//"},
      {"a+b", "a+b"},
      {"%", {}},
      {"%4", {}},
      {"%4g", {}},
      {"%G4", {}},
      {"100%", {}},
      {"%%41", {}},
      {"%c3%A4", "\xC3\xA4"},
      {"a%20", "a "},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(percent_decode(text), expected) << text;
  EXPECT_EQ(percent_decode("%00"), std::string(1, '\0'));
}

TEST(Request, path_and_query) {
  Request request;
  request.target = "/a/b?x=1&y=a%20b+c&z&w=&bad=%zz&%78%79=k?&x=2";
  EXPECT_EQ(request.path(), "/a/b");
  EXPECT_EQ(request.query("x"), "1");
  EXPECT_EQ(request.query("y"), "a b c");
  EXPECT_EQ(request.query("z"), "");
  EXPECT_EQ(request.query("w"), "");
  EXPECT_EQ(request.query("bad"), std::nullopt);
  EXPECT_EQ(request.query("xy"), "k?");
  EXPECT_EQ(request.query("none"), std::nullopt);
  request.target = "/only";
  EXPECT_EQ(request.path(), "/only");
  EXPECT_EQ(request.query("x"), std::nullopt);
}

TEST(Request, cookies_by_name) {
  Request request;
  using Values = std::vector<std::string_view>;
  EXPECT_EQ(request.cookies("a"), Values());
  request.headers.add("Cookie", "a=1; bb=x=y;c=; ;d; a=2");
  EXPECT_EQ(request.cookies("a"), (Values{"1", "2"}));
  EXPECT_EQ(request.cookies("bb"), Values{"x=y"});
  EXPECT_EQ(request.cookies("b"), Values());
  EXPECT_EQ(request.cookies("c"), Values{""});
  EXPECT_EQ(request.cookies("d"), Values());
}

TEST(Response, an_errors_fields_are_in_the_head) {
  Headers headers{{"Retry-After", "9"}};
  add_error_fields(headers, Error{.message = "", .retry_after_s = 2, .fields = {{"x-left", "0"}}});
  EXPECT_EQ(headers.find("retry-after"), "2");
  EXPECT_EQ(headers.find("x-left"), "0");
  Headers none;
  add_error_fields(none, Error{});
  EXPECT_TRUE(none.fields().empty());
}

}  // namespace
}  // namespace flotilla::http
