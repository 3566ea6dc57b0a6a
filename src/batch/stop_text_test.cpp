#include "batch/stop_text.h"

#include <gtest/gtest.h>

#include "batch/test_seeds.h"

namespace flotilla::batch {
namespace {

struct Result {
  std::string text;
  bool stopped = false;
};

// The law, on the whole text: the stop string that ends first, the longest of those that end there.
Result naive(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& stop : stops) {
      if (!stop.empty() && text.substr(0, end).ends_with(stop))
        longest = std::max(longest, stop.size());
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

std::size_t unfinished_stop(const std::string& text, const std::vector<std::string>& stops) {
  std::size_t longest = 0;
  for (const std::string& stop : stops) {
    for (std::size_t n = 1; n < stop.size(); ++n) {
      if (text.ends_with(stop.substr(0, n))) longest = std::max(longest, n);
    }
  }
  return longest;
}

TEST(StopText, finds_a_stop_string_over_token_borders) {
  StopText text({"\nUser:"});
  EXPECT_EQ(text.add("Hello").text, "Hello");
  EXPECT_EQ(text.add(".\nUs").text, ".");
  const StopText::Output output = text.add("er: more");
  EXPECT_EQ(output.text, "");
  EXPECT_TRUE(output.stopped);
  EXPECT_EQ(output.stop, "\nUser:");
  EXPECT_EQ(text.add("later").text, "");
  EXPECT_EQ(text.finish(), "");
}

TEST(StopText, shows_what_turned_out_not_to_be_a_stop_string) {
  StopText text({"aab"});
  EXPECT_EQ(text.add("aa").text, "");
  EXPECT_EQ(text.add("a").text, "a");
  EXPECT_EQ(text.add("x").text, "aax");
  EXPECT_EQ(text.add("a").text, "");
  EXPECT_EQ(text.finish(), "a");
}

TEST(StopText, the_earliest_end_wins_then_the_longest) {
  StopText first({"abc", "b"});
  EXPECT_EQ(first.add("abc").text, "a");
  StopText longest({"c", "bc", "abc"});
  EXPECT_EQ(longest.add("xabc").text, "x");
}

TEST(StopText, holds_back_half_characters_and_repairs_broken_ones) {
  StopText text({});
  EXPECT_EQ(text.add("\xE2\x82").text, "");
  EXPECT_EQ(text.add("\xAC!").text, "€!");
  EXPECT_EQ(text.add("\xE2\x82").text, "");
  EXPECT_EQ(text.finish(), "\uFFFD");
}

TEST(StopText, a_stop_string_that_begins_inside_a_character_is_no_match) {
  StopText text({"\xA9"});  // repaired to U+FFFD, like the text
  EXPECT_EQ(text.add("é").text, "é");
  EXPECT_TRUE(text.add("\xFF").stopped);
}

TEST(StopText, a_long_repetitive_stop_string_costs_one_comparison_a_byte) {
  std::string stop(100'000, 'a');
  stop += 'b';
  StopText text({stop});
  std::size_t shown = 0;
  for (int i = 0; i < 4000; ++i) shown += text.add(std::string(50, 'a')).text.size();
  EXPECT_EQ(shown, 100'000u);
  EXPECT_TRUE(text.add("b").stopped);
}

TEST(StopText, equals_the_naive_search_however_the_text_is_cut) {
  const std::vector<std::string> alphabet = {"a", "b", "é", "è", "😀"};
  for_each_seed(2000, [&](Random& random) {
    const auto word = [&](std::uint64_t longest) {
      std::string text;
      for (std::uint64_t n = random.below(longest + 1); n > 0; --n)
        text += alphabet[random.below(5)];
      return text;
    };
    std::vector<std::string> stops;
    for (std::uint64_t n = random.below(5); n > 0; --n) stops.push_back(word(4));
    const std::string whole = word(40);
    StopText text(stops);
    Result got;
    std::string fed;
    for (std::string_view rest = whole; !rest.empty() && !got.stopped;) {
      const std::size_t n = 1 + random.below(std::min<std::size_t>(rest.size(), 6));
      fed += rest.substr(0, n);
      StopText::Output output = text.add(rest.substr(0, n));
      got.text += output.text;
      got.stopped = output.stopped;
      rest.remove_prefix(n);
      if (got.stopped) continue;
      // Shown is all but what may still become a stop string, no less and no more.
      Utf8Text utf8;
      std::string complete;
      utf8.add(fed, complete);
      EXPECT_EQ(got.text.size() + unfinished_stop(complete, stops), complete.size());
    }
    got.text += text.finish();
    const Result wanted = naive(whole, stops);
    EXPECT_EQ(got.text, wanted.text);
    EXPECT_EQ(got.stopped, wanted.stopped);
  });
}

}  // namespace
}  // namespace flotilla::batch
