#include "runner/raw_prompt.h"

#include <gtest/gtest.h>

#include "runner/prepare.h"

namespace flotilla::runner {
namespace {

constexpr engine::Token kBegin = 1;

// A letter a token, and tokens to fill in with.
class Letters final : public engine::Tokenizer {
 public:
  explicit Letters(bool fills) : fills_(fills) {}

  std::vector<engine::Token> tokenize(std::string_view text, bool add_special,
                                      bool) const override {
    std::vector<engine::Token> out;
    if (add_special) out.push_back(kBegin);
    out.insert(out.end(), text.begin(), text.end());
    return out;
  }
  std::string piece(engine::Token token) const override {
    return token < 32 ? "" : std::string(1, static_cast<char>(token));
  }
  std::string written(engine::Token token) const override { return piece(token); }
  bool ends_generation(engine::Token token) const override { return token == 0; }
  int vocabulary() const override { return 200; }
  std::optional<engine::FillTokens> fill_tokens() const override {
    if (!fills_) return std::nullopt;
    return engine::FillTokens{.prefix = 150, .suffix = 151, .middle = 152};
  }

 private:
  const bool fills_;
};

TextTools tools_with(bool fills) {
  TextTools tools;
  tools.tokenizer = std::make_shared<Letters>(fills);
  tools.info.vocabulary = 200;
  tools.info.context = 16;
  tools.alias = "m";
  return tools;
}

using Ids = std::vector<engine::Token>;

TEST(RawPrompt, ASuffixStandsBehindWhatIsToBeFilledIn) {
  api::RawPrompts raw;
  raw.suffix = "yz";
  raw.echo = true;
  raw.prompts = {"ab", Ids{'a', 'b'}};
  const auto made = make_raw_prompts(raw, tools_with(true));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)[0].tokens, (Ids{kBegin, 150, 'a', 'b', 151, 'y', 'z', 152}));
  EXPECT_EQ((*made)[1].tokens, (Ids{150, 'a', 'b', 151, 'y', 'z', 152}));
  EXPECT_EQ((*made)[0].text, "ab");
  EXPECT_EQ((*made)[1].text, "ab");
}

TEST(RawPrompt, ASuffixThatCannotBeIsRefusedByName) {
  api::RawPrompts raw;
  raw.suffix = "yz";
  raw.prompts = {"ab"};
  const auto without = make_raw_prompts(raw, tools_with(false));
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().param, "suffix");
  EXPECT_EQ(without.error().reason, "unsupported_parameter");
  raw.suffix = std::string(12, 'y');
  const auto large = make_raw_prompts(raw, tools_with(true));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().param, "suffix");
  EXPECT_EQ(large.error().reason, "context_length_exceeded");
}

}  // namespace
}  // namespace flotilla::runner
