#include "runner/prepare.h"

#include <gtest/gtest.h>

#include "engine/fake_engine.h"

namespace flotilla::runner {
namespace {

class PrepareTest : public testing::Test {
 protected:
  TextTools tools_ = make_text_tools(
      engine::make_fake_model(
          {.width = 1, .context = 100, .step_tokens_max = 64, .per_step = {}, .per_token = {}}),
      "m");
  CallHeaders headers_;

  Result<PreparedChat> prepare(const std::string& fields, std::size_t content_bytes = 4) {
    const std::string body = R"({"model":"m","messages":[{"role":"user","content":")" +
                             std::string(content_bytes, 'x') + "\"}]" + fields + "}";
    return prepare_chat(body, headers_, tools_, 77);
  }
};

TEST_F(PrepareTest, AbsentAndTooLargeLimitsReachToTheEdgeOfTheContext) {
  for (const char* fields : {"", R"(,"max_tokens":100000)"}) {
    const auto chat = prepare(fields);
    ASSERT_TRUE(chat) << chat.error().message;
    EXPECT_EQ(chat->answers.at(0).tokens_max, 100 - static_cast<int>(chat->prompt.size()));
  }
  EXPECT_EQ(prepare(R"(,"max_tokens":3)")->answers.at(0).tokens_max, 3);
}

TEST_F(PrepareTest, APromptLeavesRoomForOneTokenOrIsRefusedWithBothNumbers) {
  const std::size_t frame = prepare("", 0)->prompt.size();
  const auto fits = prepare("", 99 - frame);
  ASSERT_TRUE(fits);
  EXPECT_EQ(fits->prompt.size(), 99U);
  EXPECT_EQ(fits->answers.at(0).tokens_max, 1);
  const auto over = prepare("", 100 - frame);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Code::InvalidArgument);
  EXPECT_EQ(over.error().reason, "context_length_exceeded");
  EXPECT_NE(over.error().message.find("the prompt has 100 tokens"), std::string::npos);
  EXPECT_NE(over.error().message.find("context holds 100"), std::string::npos);
}

TEST_F(PrepareTest, TheClientsSeedWinsOverTheGatewaysAndThatOverChance) {
  EXPECT_EQ(prepare("")->answers.at(0).sampling.seed, 77U);
  headers_.seed = 5;
  EXPECT_EQ(prepare("")->answers.at(0).sampling.seed, 5U);
  const auto chat = prepare(R"(,"seed":9,"n":3)");
  EXPECT_EQ(chat->answers.at(0).sampling.seed, 9U);
  EXPECT_NE(chat->answers.at(1).sampling.seed, 9U);
  EXPECT_NE(chat->answers.at(1).sampling.seed, chat->answers.at(2).sampling.seed);
}

TEST_F(PrepareTest, GivenTokensBelongToTheirChoice) {
  const std::string resume = R"({"1":[97,98],"finished":[0]})";
  headers_.protocol = true;
  headers_.resume_bytes = resume.size();
  const std::string body =
      resume + R"({"model":"any","n":2,"messages":[{"role":"user","content":"x"}]})";
  const auto chat = prepare_chat(body, headers_, tools_, 0);
  ASSERT_TRUE(chat) << chat.error().message;
  EXPECT_TRUE(chat->answers.at(0).given.empty());
  EXPECT_EQ(chat->answers.at(1).given, (std::vector<engine::Token>{97, 98}));
  EXPECT_TRUE(chat->resume.finished.contains(0));
}

TEST_F(PrepareTest, MoreMessagesThanTheContextHasTokensAreRefusedBeforeTheyAreRendered) {
  std::string body = R"({"model":"m","messages":[{"role":"user","content":""})";
  for (int i = 1; i < 100; ++i) body += R"(,{"role":"user","content":""})";
  const auto chat = prepare_chat(body + "]}", headers_, tools_, 0);
  ASSERT_FALSE(chat);
  EXPECT_NE(chat.error().message.find("at least 100 tokens"), std::string::npos)
      << chat.error().message;
}

}  // namespace
}  // namespace flotilla::runner
