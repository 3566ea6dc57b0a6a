#include "http/sse.h"

#include <vector>

#include <gtest/gtest.h>

namespace flotilla::http {
namespace {

using Blocks = std::vector<std::string>;

struct Collect {
  Blocks blocks;
  void operator()(std::string_view block) { blocks.emplace_back(block); }
};

TEST(Sse, writes_events_and_comments) {
  EXPECT_EQ(sse_event("{}"), "data: {}\n\n");
  EXPECT_EQ(sse_event("{}", "nodes"), "event: nodes\ndata: {}\n\n");
  EXPECT_EQ(sse_comment("t 0 1,2"), ": t 0 1,2\n\n");
}

TEST(SseSplitter, gives_the_same_blocks_whatever_the_borders) {
  const Blocks expected{"data: one\n\n",    ": c\ndata: two\n\n",     "\n",
                        "event: x\r\n\r\n", "data: a\ndata: b\r\n\n", "data: last\n\r\n"};
  std::string stream;
  for (const std::string& block : expected) stream += block;
  stream += "data: cut";
  for (std::size_t a = 0; a <= stream.size(); ++a) {
    for (std::size_t b = a; b <= stream.size(); ++b) {
      SseSplitter splitter;
      Collect collect;
      const std::string_view text = stream;
      for (const auto part : {text.substr(0, a), text.substr(a, b - a), text.substr(b)}) {
        ASSERT_TRUE(splitter.feed(part, std::ref(collect)));
      }
      ASSERT_EQ(collect.blocks, expected) << a << " " << b;
      ASSERT_FALSE(splitter.empty());
    }
  }
}

TEST(SseSplitter, gives_the_same_blocks_byte_by_byte) {
  SseSplitter splitter;
  Collect collect;
  for (const char c : std::string("data: x\r\n\r\ndata: y\n\n")) {
    ASSERT_TRUE(splitter.feed(std::string_view(&c, 1), std::ref(collect)));
  }
  EXPECT_EQ(collect.blocks, (Blocks{"data: x\r\n\r\n", "data: y\n\n"}));
  EXPECT_TRUE(splitter.empty());
}

TEST(SseSplitter, refuses_a_block_beyond_its_bound) {
  const std::string most = "data: " + std::string((1 << 20) - 8, 'x');
  SseSplitter splitter;
  Collect collect;
  EXPECT_TRUE(splitter.feed(most + "\n\n", std::ref(collect)));
  EXPECT_EQ(collect.blocks.size(), 1U);
  EXPECT_FALSE(splitter.feed(most + "x\n\n", std::ref(collect)));
  SseSplitter open;
  EXPECT_TRUE(open.feed(most, std::ref(collect)));
  EXPECT_FALSE(open.feed("xyz", std::ref(collect)));
}

TEST(SseData, joins_the_data_lines) {
  const std::pair<const char*, const char*> cases[] = {
      {"data: a\n\n", "a"},
      {"data:a\r\n\r\n", "a"},
      {"data:  a\n\n", " a"},
      {": t 0 1\ndata: a\n\n", "a"},
      {"event: x\nid: 1\n\n", ""},
      {"data: a\ndata: b\n\n", "a\nb"},
      {"data\ndata: b\n\n", "\nb"},
      {"database: 1\ndata: c\n\n", "c"},
      {"\n", ""},
      {"", ""},
  };
  for (const auto& [block, expected] : cases) EXPECT_EQ(sse_data(block), expected) << block;
}

}  // namespace
}  // namespace flotilla::http
