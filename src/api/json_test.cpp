#include "api/json.h"

#include <gtest/gtest.h>

#include "api/json_text.h"

namespace flotilla::api::json {
namespace {

std::string error_of(std::string_view text, const Limits& limits = {}) {
  auto value = parse(text, limits);
  return value ? "" : value.error().message;
}

TEST(Json, KeepsWhatItParses) {
  const auto value =
      parse(R"({"a":[1,-2,3.5,true,null,"x\u00e9\n"],"b":{"c":18446744073709551615}})");
  ASSERT_TRUE(value);
  EXPECT_EQ(to_text(*value),
            "{\"a\":[1,-2,3.5E0,true,null,\"x\xC3\xA9\\n\"],\"b\":{\"c\":18446744073709551615}}");
}

TEST(Json, RefusesWhatIsNotJson) {
  EXPECT_NE(error_of(""), "");
  EXPECT_NE(error_of("{\"a\":").find("ends at byte 5"), std::string::npos);
  EXPECT_NE(error_of("{} x"), "");
  EXPECT_NE(error_of("{\"a\":01}"), "");
  EXPECT_NE(error_of("{\"a\":NaN}"), "");
  EXPECT_NE(error_of("\"\xFF\xFE\""), "");
  EXPECT_NE(error_of("\"\xED\xA0\x80\""), "");
  EXPECT_NE(error_of("\"\\ud800\""), "");
  EXPECT_NE(error_of("\"\n\""), "");
  EXPECT_NE(error_of("{\"a\":1,}"), "");
}

TEST(Json, RefusesBeyondItsLimits) {
  EXPECT_EQ(error_of(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_NE(error_of(std::string(65, '[') + std::string(65, ']')).find("64 levels"),
            std::string::npos);
  EXPECT_NE(error_of(std::string(100000, '[')), "");
  EXPECT_NE(error_of("[1,2,3]", {.bytes_max = 6}).find("at most 6"), std::string::npos);
  EXPECT_NE(error_of("1e999").find("out of range"), std::string::npos);
  EXPECT_NE(error_of(R"("a\u0000b")").find("U+0000"), std::string::npos);
  EXPECT_NE(error_of(R"({"a\u0000b":1})").find("U+0000"), std::string::npos);
}

// What a value takes in memory has little to do with the bytes that it has in the text.
TEST(Json, BoundsTheValuesOfAText) {
  const auto refused = [](std::string_view text) {
    const auto value = parse(text, {.values_max = 5});
    if (value) return false;
    EXPECT_EQ(value.error().code, Code::TooLarge) << text;
    EXPECT_NE(value.error().message.find("more than 5 values"), std::string::npos) << text;
    return true;
  };
  for (const char* five : {"[1,2,3,4]", "[[],[],[],[]]", R"({"a":1,"b":2})", "[[[[[]]]]]",
                           R"(["a",-1,1e3,18446744073709551615])", "[null,true,false,{}]"})
    EXPECT_FALSE(refused(five)) << five;
  for (const char* six :
       {"[1,2,3,4,5]", "[[],[],[],[],{}]", R"({"a":1,"b":[2]})", "[[[[[[]]]]]]",
        R"(["a",-1,1e3,18446744073709551615,""])", "[null,true,false,{},null]", R"([0,0,0,{"a")"})
    EXPECT_TRUE(refused(six)) << six;
  std::string text = "[0";
  while (text.size() < 3'000'000) text += ",0";
  EXPECT_EQ(parse(text + "]").error().code, Code::TooLarge);
}

TEST(Json, RefusesDuplicateKeysWhereverTheyAre) {
  EXPECT_NE(error_of(R"({"model":1,"b":2,"model":3})").find("\"model\" appears twice"),
            std::string::npos);
  EXPECT_NE(error_of(R"([{"x":{"a":1,"\u0061":2}}])").find("\"a\" appears twice"),
            std::string::npos);
  EXPECT_EQ(error_of(R"({"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]})"), "");
}

TEST(JsonReader, NamesFieldValueAndRemedy) {
  const auto object = parse_object(R"({"n":17,"t":"hot","s":5,"big":1e300,"f":2.5,"c":"blue"})");
  ASSERT_TRUE(object);
  const auto message = [&](auto read) {
    Fault fault;
    Reader in(*object, fault, "opts");
    read(in);
    return fault ? fault.unexpected().error().message : "";
  };
  EXPECT_EQ(message([](Reader& in) { in.integer("n", 1, 16); }),
            "opts.n is 17; it must be an integer from 1 to 16");
  EXPECT_EQ(message([](Reader& in) { in.number("t", 0, 2); }),
            "opts.t is \"hot\"; it must be a number from 0 to 2");
  EXPECT_EQ(message([](Reader& in) { in.string("s"); }), "opts.s is 5; it must be a string");
  EXPECT_NE(message([](Reader& in) { in.integer("big", 1, INT32_MAX); }), "");
  EXPECT_NE(message([](Reader& in) { in.integer("f", 1, 16); }), "");
  EXPECT_EQ(message([](Reader& in) { in.choice("c", {"red", "green"}); }),
            "opts.c is \"blue\"; it must be one of: red, green");
  EXPECT_EQ(message([](Reader& in) { in.require("gone", "a string"); }),
            "opts.gone is missing; it must be a string");
}

TEST(JsonReader, NullIsUnset) {
  const auto object = parse_object(R"({"a":null,"b":4.0})");
  ASSERT_TRUE(object);
  Fault fault;
  Reader in(*object, fault);
  EXPECT_FALSE(in.string("a") || in.integer("a", 0, 1) || in.number("a", 0, 1) || in.boolean("a"));
  EXPECT_EQ(in.array("a", 1), nullptr);
  EXPECT_EQ(in.object("a"), nullptr);
  EXPECT_EQ(in.integer("b", 0, 10), 4);
  EXPECT_FALSE(fault);
}

TEST(JsonReader, KeepsTheFirstFaultAndItsField) {
  const auto object = parse_object(R"({"a":1,"b":2})");
  ASSERT_TRUE(object);
  Fault fault;
  Reader in(*object, fault);
  in.string("a");
  in.string("b");
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault.unexpected().error().param, "a");
}

TEST(JsonReader, RefusesUnknownMembersWhenAsked) {
  const auto object = parse_object(R"({"known":1,"knwon":2})");
  ASSERT_TRUE(object);
  Fault fault;
  Reader in(*object, fault);
  in.integer("known", 0, 5);
  in.refuse_unknown();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault.unexpected().error().message,
            "knwon is not a field here; did you mean \"known\"? known are: known");
}

TEST(JsonText, QuotesEveryByteSoThatItParsesBack) {
  std::string text;
  for (int c = 1; c < 128; ++c) text += static_cast<char>(c);
  text += "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
  const auto back = parse(json_string(text));
  ASSERT_TRUE(back);
  EXPECT_EQ(std::string(back->get_string()), text);
}

TEST(JsonText, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(json_string("a\xFF"), "\"a\xEF\xBF\xBD\"");
  EXPECT_EQ(json_string("\xC0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(json_string("\xED\xA0\x80x"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDx\"");
  EXPECT_EQ(json_string("\xF0\x9F\x98"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(json_string(std::string_view("\0", 1)), "\"\\u0000\"");
}

}  // namespace
}  // namespace flotilla::api::json
