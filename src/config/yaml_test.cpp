#include "config/yaml.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace flotilla::config {
namespace {

using Kind = Node::Kind;

std::string error_of(std::string_view text) {
  const auto read = parse_yaml(text, "f");
  EXPECT_FALSE(read) << text.substr(0, 100);
  return read ? std::string() : read.error().message;
}

Node tree(std::string_view text) {
  auto read = parse_yaml(text, "f");
  EXPECT_TRUE(read) << read.error().message;
  return read ? *read : Node{};
}

TEST(YamlTest, values_know_their_kind_and_place) {
  const Node root = tree("port: 80\nhost: \"80\"\non: true\nnone: ~\nlist:\n  - a b\n  - -1.5e3\n");
  ASSERT_TRUE(root.is_map());
  EXPECT_EQ(root.find("port")->kind, Kind::Number);
  EXPECT_EQ(root.find("host")->kind, Kind::Text);
  EXPECT_EQ(root.find("on")->kind, Kind::Bool);
  EXPECT_EQ(root.find("none")->kind, Kind::Null);
  const Node& list = *root.find("list");
  ASSERT_EQ(list.items.size(), 2U);
  EXPECT_EQ(list.items[0].text, "a b");
  EXPECT_EQ(list.items[1].kind, Kind::Number);
  EXPECT_EQ(list.items[1].at.line, 7);
  EXPECT_EQ(list.items[1].at.column, 5);
  EXPECT_EQ(root.find("on")->key_at.line, 3);
  EXPECT_EQ(root.find("nothing"), nullptr);
}

TEST(YamlTest, words_that_readers_of_yaml_take_differently_are_texts) {
  for (const char* word :
       {"yes", "off", "010", "0x10", "1_000", "+5", ".5", "5.", "0o7", ".inf", "1:30"})
    EXPECT_EQ(tree(std::string("a: ") + word).find("a")->kind, Kind::Text) << word;
}

TEST(YamlTest, nothing_is_an_empty_document) {
  for (const char* text : {"", "# only words\n", "\n\n", "---\n"})
    EXPECT_EQ(tree(text).kind, Kind::Null) << text;
}

TEST(YamlTest, what_hides_content_is_refused) {
  EXPECT_EQ(error_of("a: &x 1\nb: *x\n"),
            "f:1:4: the anchor &x is not taken here; write out what it stands for");
  EXPECT_NE(error_of("a: 1\n<<: {b: 2}\n").find("f:2:1: a merge key"), std::string::npos);
  EXPECT_NE(error_of("a: !!python/object:os.system x\n").find("f:1:4: the tag"), std::string::npos);
  EXPECT_EQ(error_of("a: 1\nb: 2\na: 3\n"), "f:3:1: \"a\" is there twice, first on line 1");
  EXPECT_NE(error_of("{a: {b: 1, b: 2}}").find("twice"), std::string::npos);
  EXPECT_NE(error_of("a: 1\n---\nb: 2\n").find("second document"), std::string::npos);
  EXPECT_NE(error_of("? [a, b]\n: 1\n").find("f:1:3: a list is no key"), std::string::npos);
  EXPECT_NE(error_of("~: 1\n").find("is no key"), std::string::npos);
}

TEST(YamlTest, bombs_are_cheap) {
  std::string laughs = "a: &a [x, x]\n";
  for (char c = 'b'; c <= 'z'; ++c)
    laughs += fmt::format("{0}: &{0} [*{1}, *{1}, *{1}]\n", c, static_cast<char>(c - 1));
  EXPECT_NE(error_of(laughs).find("f:1:4: the anchor &a"), std::string::npos);
  EXPECT_NE(error_of(std::string(100, '[')).find("deeper than 32"), std::string::npos);
  EXPECT_NE(error_of(std::string(100'000, '[')).find("f:1:"), std::string::npos);
  EXPECT_NE(error_of(std::string(100'000, '{')).find("f:1:"), std::string::npos);
  std::string dashes;
  for (int i = 0; i < 10'000; ++i) dashes += "- ";
  EXPECT_NE(error_of(dashes).find("deeper than 32"), std::string::npos);
  std::string questions;
  for (int i = 0; i < 10'000; ++i) questions += "? ";
  EXPECT_NE(error_of(questions).find("f:1:"), std::string::npos);
  std::string many = "a:\n";
  for (int i = 0; i <= 50'000; ++i) many += " - 1\n";
  EXPECT_NE(error_of(many).find("at most 50000 values"), std::string::npos);
}

TEST(YamlTest, a_huge_text_is_taken_up_to_the_files_limit) {
  EXPECT_EQ(tree("a: " + std::string(300'000, 'x')).find("a")->text.size(), 300'000U);
  EXPECT_NE(error_of("a: " + std::string(kFileBytesMax, 'x')).find("more than the 1048576 bytes"),
            std::string::npos);
  const Node root = tree("a: \"" + std::string(1000, 'x') + "\"");
  EXPECT_LT(shown(*root.find("a")).size(), 100U);
}

TEST(YamlTest, bytes_that_are_no_text_are_named_with_their_place) {
  EXPECT_EQ(error_of(std::string_view("a: 1\nb: x\0y\n", 12)), "f:2:5: a NUL is not taken");
  EXPECT_EQ(error_of("a: \"\\0\"\n"), "f:1:4: a text has a NUL in it");
  EXPECT_EQ(error_of("a: \xff\n"), "f:1:4: this is not UTF-8");
  EXPECT_EQ(error_of("a: \xed\xa0\x80\n"), "f:1:4: this is not UTF-8");
  EXPECT_EQ(error_of(std::string_view("\xff\xfe"
                                      "a\0",
                                      4)),
            "f:1:1: this is not UTF-8");
  EXPECT_EQ(tree("a: gr\xc3\xbc\xc3\x9f \xf0\x9f\x9a\xa2\n").find("a")->text,
            "gr\xc3\xbc\xc3\x9f \xf0\x9f\x9a\xa2");
}

TEST(YamlTest, tabs_are_named_as_what_is_wrong) {
  EXPECT_NE(error_of("a:\n\tb: 1\n").find("f:2:"), std::string::npos);
  EXPECT_NE(error_of("a:\n\tb: 1\n").find("begins with a tab; YAML indents with spaces"),
            std::string::npos);
  EXPECT_EQ(tree("a: |\n  x\n  \ty\n").find("a")->text, "x\n\ty\n");
}

TEST(YamlTest, a_broken_text_has_its_place) {
  EXPECT_NE(error_of("a: [1, 2\nb: 3\n").find("this is no YAML"), std::string::npos);
  EXPECT_NE(error_of("a: b: c\n").find("f:1:5: this is no YAML"), std::string::npos);
  EXPECT_NE(error_of("a: \"x\n").find("this is no YAML"), std::string::npos);
}

// Whatever a tree holds, its text reads back as the same tree.
TEST(YamlTest, trees_read_back_from_their_text) {
  const Node root = tree(R"({"a": {"b": [1, "1", true, "true", null, "null", "", "x y", "#", "- ",
      "yes", "1e3", "a: b", "\ttab", "two\nlines", "q\"\\", "ü", " lead", "*x", "{}", "@"]},
      "deep": [[1, [2]], {"k": {"l": [{"m": 1, "n": [1]}, {"m": 2}]}}], "e": [], "f": {},
      "odd key: #": 1, "8": 2})");
  const std::string text = to_yaml(root);
  EXPECT_EQ(to_json(tree(text)), to_json(root)) << text;
  EXPECT_EQ(to_yaml(tree("b: 1\na:\n- x\n- k: v\n  l: w\n")),
            "b: 1\na:\n  - x\n  - k: v\n    l: w\n");
  EXPECT_EQ(to_yaml(Node{}), "null\n");
}

// Each character, at the beginning, inside and at the end of a value and of a key; as YAML and as
// the JSON that the API writes.
TEST(YamlTest, every_character_reads_back) {
  std::vector<std::string> characters = {"\xc2\x80",     "\xc2\x85",        "\xc2\xa0",
                                         "\xe2\x80\xa8", "\xe2\x80\xa9",    "\xef\xbb\xbf",
                                         "\xef\xbf\xbf", "\xf0\x9f\x9a\xa2"};
  for (char c = 1; c < 127; ++c) characters.emplace_back(1, c);
  characters.emplace_back("\x7f");
  for (const std::string& one : characters) {
    Node root{.kind = Kind::Map};
    for (const std::string& text :
         {one, one + "ab", "ab" + one + "cd", "abc" + one, "\n" + one + "a"})
      root.items.push_back({.kind = Kind::Text, .text = text, .key = "k" + text});
    for (const std::string& written : {to_yaml(root), to_json(root)}) {
      const auto read = parse_yaml(written, "f");
      ASSERT_TRUE(read) << read.error().message << "\n" << written;
      EXPECT_EQ(to_json(*read), to_json(root)) << written;
    }
  }
}

}  // namespace
}  // namespace flotilla::config
