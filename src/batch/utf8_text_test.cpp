#include "batch/utf8_text.h"

#include <gtest/gtest.h>

#include "batch/test_seeds.h"

namespace flotilla::batch {
namespace {

std::string repaired(std::string_view bytes) {
  Utf8Text utf8;
  std::string out;
  utf8.add(bytes, out);
  utf8.finish(out);
  return out;
}

// The standard's table of well-formed sequences (Unicode, table 3-7), taken literally.
struct Form {
  int length;
  std::uint8_t low[4], high[4];
};
constexpr Form kForms[] = {
    {1, {0x00}, {0x7F}},
    {2, {0xC2, 0x80}, {0xDF, 0xBF}},
    {3, {0xE0, 0xA0, 0x80}, {0xE0, 0xBF, 0xBF}},
    {3, {0xE1, 0x80, 0x80}, {0xEC, 0xBF, 0xBF}},
    {3, {0xED, 0x80, 0x80}, {0xED, 0x9F, 0xBF}},
    {3, {0xEE, 0x80, 0x80}, {0xEF, 0xBF, 0xBF}},
    {4, {0xF0, 0x90, 0x80, 0x80}, {0xF0, 0xBF, 0xBF, 0xBF}},
    {4, {0xF1, 0x80, 0x80, 0x80}, {0xF3, 0xBF, 0xBF, 0xBF}},
    {4, {0xF4, 0x80, 0x80, 0x80}, {0xF4, 0x8F, 0xBF, 0xBF}},
};

// The longest prefix of `bytes` that begins a well-formed sequence; `whole` when it is one.
std::size_t longest(std::string_view bytes, bool& whole) {
  std::size_t best = 0;
  whole = false;
  for (const Form& form : kForms) {
    std::size_t n = 0;
    while (n < bytes.size() && n < static_cast<std::size_t>(form.length)) {
      const auto byte = static_cast<std::uint8_t>(bytes[n]);
      if (byte < form.low[n] || byte > form.high[n]) break;
      ++n;
    }
    if (n == static_cast<std::size_t>(form.length)) whole = true;
    best = std::max(best, n);
  }
  return best;
}

std::string naive(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    bool whole = false;
    const std::size_t n = longest(bytes, whole);
    out += whole ? std::string(bytes.substr(0, n)) : "\xEF\xBF\xBD";
    bytes.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return out;
}

TEST(Utf8Text, replaces_each_maximal_subpart_once) {
  EXPECT_EQ(repaired("\xE2\x82\xAC"), "€");
  EXPECT_EQ(repaired("\xE2\x82"), "\uFFFD");
  EXPECT_EQ(repaired("\xE2\x82x"), "\uFFFDx");
  EXPECT_EQ(repaired("\xF0\x9F\x98\xE2\x82\xAC"), "\uFFFD€");
  EXPECT_EQ(repaired("\xE0\x80\x80"), "\uFFFD\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(repaired("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");            // surrogate
  EXPECT_EQ(repaired("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // beyond U+10FFFF
  EXPECT_EQ(repaired("\xC0\xAF\xFF"), "\uFFFD\uFFFD\uFFFD");
  // The standard's own example (section 3.9).
  EXPECT_EQ(repaired("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
}

TEST(Utf8Text, shows_a_character_with_its_last_byte_and_not_before) {
  Utf8Text utf8;
  std::string out;
  for (const char* byte : {"\xF0", "\x9F", "\x98"}) {
    utf8.add(byte, out);
    EXPECT_EQ(out, "");
  }
  utf8.add("\x80", out);
  EXPECT_EQ(out, "😀");
}

TEST(Utf8Text, equals_the_table_however_the_bytes_are_cut) {
  constexpr std::string_view kBytes =
      "a\x80\xBF\x8F\x90\x9F\xA0\xC1\xC2\xE0\xE1\xED\xEF\xF0\xF1\xF4\xF5\xFF";
  for_each_seed(2000, [&](Random& random) {
    std::string bytes;
    for (std::uint64_t n = random.below(24); n > 0; --n)
      bytes += kBytes[random.below(kBytes.size())];
    Utf8Text utf8;
    std::string out;
    for (std::string_view rest = bytes; !rest.empty();) {
      const std::size_t n = 1 + random.below(rest.size());
      utf8.add(rest.substr(0, n), out);
      rest.remove_prefix(n);
    }
    utf8.finish(out);
    EXPECT_EQ(out, naive(bytes));
  });
}

}  // namespace
}  // namespace flotilla::batch
