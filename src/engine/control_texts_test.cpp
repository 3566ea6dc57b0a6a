#include "engine/control_texts.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace flotilla::engine {
namespace {

std::string joined(const std::vector<TextPart>& parts) {
  std::string text;
  for (const TextPart& part : parts)
    text += (part.control ? "[" : "") + std::string(part.text) + (part.control ? "]" : "");
  return text;
}

TEST(ControlTexts, AreFoundLeftmostAndLongest) {
  const ControlTexts controls({"<s>", "<|im_end|>", "<|im|>", "<s>more", "", "\xEF\xBD\x9C"});
  EXPECT_EQ(joined(controls.split("a<s>b")), "a[<s>]b");
  EXPECT_EQ(joined(controls.split("<s>more<s>mor")), "[<s>more][<s>]mor");
  EXPECT_EQ(joined(controls.split("<|im_<|im_end|>end|>")), "<|im_[<|im_end|>]end|>");
  EXPECT_EQ(joined(controls.split("x\xEF\xBD\x9Cy\xEF\xBD")), "x[\xEF\xBD\x9C]y\xEF\xBD");
  EXPECT_EQ(joined(controls.split("plain < text <|im")), "plain < text <|im");
  EXPECT_TRUE(controls.split("").empty());
  EXPECT_FALSE(controls.occurs_in("<|im_end|"));
  EXPECT_FALSE(ControlTexts({}).occurs_in("anything"));
}

TEST(ControlTexts, NoFormIsLeftInTypedParts) {
  const std::uint64_t seed = 4;
  Random random(seed);
  const auto word = [&](std::uint64_t longest) {
    std::string text;
    for (std::uint64_t n = random.below(longest) + 1; n > 0; --n) text += "ab<"[random.below(3)];
    return text;
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> forms;
    for (int i = 0; i < 4; ++i) forms.push_back(word(4));
    const ControlTexts controls(forms);
    const std::string text = word(40);
    std::string whole;
    for (const TextPart& part : controls.split(text)) {
      whole += part.text;
      bool found = false;
      for (const std::string& form : forms) {
        found =
            found || (part.control ? part.text == form : part.text.find(form) != part.text.npos);
      }
      EXPECT_EQ(found, part.control) << "seed " << seed << " round " << round << ": " << text;
    }
    EXPECT_EQ(whole, text);
  }
}

}  // namespace
}  // namespace flotilla::engine
